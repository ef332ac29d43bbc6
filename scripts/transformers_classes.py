"""Write down which tokenizer class the installed transformers takes for which model, into `src/detok/data/`.

In: the installed transformers. Out: `transformers_classes.json`, by which detok chooses as AutoTokenizer does.
With `--check` nothing is written, and the exit code is 1 if the file would have changed.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import transformers
from transformers.convert_slow_tokenizer import SLOW_TO_FAST_CONVERTERS
from transformers.models.auto import tokenization_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, CONFIG_MAPPING_NAMES  # type: ignore[attr-defined]  # lazy
from transformers.tokenization_utils_tokenizers import TokenizersBackend

FILE = Path(__file__).resolve().parent.parent / "src" / "detok" / "data" / "transformers_classes.json"


def facts() -> dict[str, Any]:
    """Return what is to be written: model types and class names, as transformers has them."""
    models = dict(tokenization_auto.TOKENIZER_MAPPING_NAMES)
    types = sorted(CONFIG_MAPPING_NAMES)
    classes = {name: meant for name in sorted(_names()) if (meant := _class_of(name)) is not None}
    return {
        "transformers": transformers.__version__,
        "models": {name: models[name] for name in sorted(models) if models[name]},
        "configurations": types,
        "renamed": {name: _effective(name) for name in types if _effective(name) != name},
        "shared": {name: kind for name in types if (kind := _shared(name, models)) is not None},
        "distrusted": sorted(tokenization_auto.MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS),
        "paths": list(tokenization_auto.MODEL_IDS_TO_TOKENIZERS_BACKEND),
        # The other names in Fast mean the class without; which of them transformers lists depends on what it was asked before.
        "classes": {name: kind for name, kind in classes.items() if "Fast" not in name or classes.get(name[:-4], kind) != kind},
    }


def _names() -> set[str]:
    """All names under which a configuration may call for a tokenizer class."""
    named = {name for name in dir(transformers) if name.endswith(("Tokenizer", "TokenizerFast", "Backend"))}
    mapped = {name for name in tokenization_auto.TOKENIZER_MAPPING_NAMES.values() if name}
    return {name for name in named | mapped | {*SLOW_TO_FAST_CONVERTERS} | {"BloomTokenizer"} if not name.startswith("Auto")}


def _class_of(name: str) -> list[str] | None:
    """The name of the class that a name means, and what it does with a tokenizer.json: "reads" or "rebuilds" it, or "python"."""
    found = tokenization_auto.tokenizer_class_from_name(name)
    if found is None or type.__getattribute__(found, "__module__").startswith("transformers.utils"):
        return None
    if not issubclass(found, TokenizersBackend):
        return [found.__name__, "python"]
    own = [kind for kind in found.__mro__ if issubclass(kind, TokenizersBackend) and kind is not TokenizersBackend]
    return [found.__name__, "rebuilds" if any("__init__" in vars(kind) for kind in own) else "reads"]


def _effective(name: str) -> str:
    """The model type that a configuration of a type has once it is loaded, mostly the same."""
    try:
        return str(CONFIG_MAPPING[name].model_type)
    except (ImportError, AttributeError):
        return name


def _shared(name: str, models: Mapping[str, str | None]) -> str | None:
    """The class of a type that has none of its own, by another type with the same configuration."""
    if models.get(_effective(name)):
        return None
    try:
        found = tokenization_auto.TOKENIZER_MAPPING.get(CONFIG_MAPPING[name], None)
    except (ImportError, AttributeError):
        return None
    return None if found is None else str(type.__getattribute__(found, "__name__"))


def _json(facts: dict[str, Any]) -> str:
    """A line for each fact, and for each item of an object; lists are one line."""
    lines = []
    for name, value in facts.items():
        if isinstance(value, dict):
            items = ",\n".join(f"  {json.dumps(key)}: {json.dumps(item)}" for key, item in value.items())
            lines.append(f" {json.dumps(name)}: {{\n{items}\n }}")
        else:
            lines.append(f" {json.dumps(name)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main(arguments: list[str] | None = None) -> int:
    """Write the file, or with `--check` compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the file would have changed")
    checks = parser.parse_args(arguments).check
    content = _json(facts())
    if checks:
        return int(not FILE.is_file() or FILE.read_text(encoding="utf-8") != content)
    FILE.write_text(content, encoding="utf-8")
    print(f"{FILE.name}: {len(content):,} bytes, of transformers {transformers.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
