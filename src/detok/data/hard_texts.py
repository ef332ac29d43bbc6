"""
Texts that encoders get wrong: what normalisers change, what pre-tokenizers split in surprising places, what looks like a special
token and is none.

They are pieces: `detok.load` tries them as they stand, `detok check --encode` also throws them together.
"""

from __future__ import annotations

__all__ = ["HARD_TEXTS"]

_NORMALISED = (
    "é e\u0301 e\u0301\u0301 \u0301",  # composed, decomposed, twice marked, a mark without a letter
    "a\u0327\u0301 a\u0301\u0327 q\u0307\u0323",  # marks in two orders, of which one is canonical
    "Å Å A\u030a Ω Ω K K",  # signs that become letters
    "ﬁ ﬀ ﬃ ½ ² ₂ ① Ⅳ ㎏ ㍿ ﹏",  # compatibility characters
    "ＡＢＣ　１２３　ｶﾞ ガ カ\u3099",  # full width, half width, a voicing mark apart
    "가 \u1100\u1161 각 \u1100\u1161\u11a8 한\u11ab",  # Hangul whole, in parts, and whole with a part behind
    "ǅ ẞ ß SS ı İ i\u0307 Σας ΣΑΣ",  # letters whose case is hard
    "क\u093c क़ ড\u09bc ড় \u0f71\u0f72\u0f74",  # excluded from composition, and vowels in order of class
    "\ufb1d שׂ ש\u05c2 \u05d0\u05b7 \u0627\u064e\u0651",
    "豈 更 \U0002f804 你",  # compatibility ideographs
    "\u2126\u212b\u0344\u0374\u037e\u0387\u1fef",  # singletons
)

_SPACES = (
    " ",
    "  ",
    "\n",
    "\n\n",
    " \n",
    "\n ",
    "\r\n",
    "\r",
    "\t",
    "\t\t \t",
    " a",
    "a ",
    " a b  c   d    e     f",
    "a\n\n\nb\n \n c\r\n\r\nd \t e",
    "   \n   \n   x",
    " " * 31 + "x" + " " * 64 + "y" + " " * 257,
    "\n" * 40 + "x" + "\r\n" * 17,
    "a\u00a0b\u2003c\u2009d\u202fe\u205ff\u3000g\u1680h",  # spaces that are no U+0020
    "\u00a0 \u3000 \u2028\u2029\u0085\u000b\u000c x",
    "\u200b\u200c\u200d\u2060\ufeff a\u00adb",  # nothing to see
    "\ufeffBOM first",
)

_WORDS = (
    "don't DON'T I'm I'M we'll WE'LL they've it's IT'S he'd l'été d'Artagnan o'clock 'tis '' '",
    "don’t I’M ſ 'ſ 'S 'ſtraße",  # a long s is an s to a pattern that ignores case
    "helloWorld HelloWORLD HTTPServer XMLHttpRequest iPhone eBay McDonald",
    "snake_case __init__ kebab-case a.b.c a/b/c C:\\path\\to user@example.com https://example.com/a?b=c&d=%20#e",
    "0 01 012 0123 01234 012345 0123456 1234567890123456789012345678901234567890",
    "1,234,567.89 -1.5e-10 0xDEADBEEF 192.168.0.1 2024-02-29T23:59:60Z ٠١٢٣٤٥ १२३४ 一二三 ²³¼",
    "!!! ??? ... ---- ==== **** #### //// ;;;; ,,,, (((( )))) [[]] {{}} <<>> `` ``` ~~~",
    "a!b?c.d,e;f:g(h)i[j]k{l}m<n>o|p\\q^r_s`t~u@v#w$x%y&z*0+1=2",
    "¡¿«»„“”‚‘’‹›…–—•·§¶†‡№™©®°€£¥₹₿",
    "x" * 300,
    "ab" * 200 + "!" * 150,
    "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
    "การทดสอบภาษาไทยที่ไม่มีช่องว่างระหว่างคำในประโยคเดียวกัน",
    "中文没有空格所以分词很难，標點符號也不同。「引号」、《书名》……",
    "日本語のテキストにはひらがなカタカナ漢字とｈａｎｋａｋｕが混ざる。ーーー々〆",
    "मैं हिन्दी में लिख रहा हूँ क्षत्रिय ज्ञान श्री",
    "မြန်မာဘာသာ ភាសាខ្មែរ ພາສາລາວ བོད་སྐད་",
    "العَرَبِيَّة وَهٰذا نَصٌّ بِالحَرَكات ـــ ﷽",
    "עִבְרִית עם ניקוד",
    "Việt Nam tiếng Việt Vie\u0323\u0302t",
    "ქართული Հայերեն አማርኛ ᏣᎳᎩ ᐃᓄᒃᑎᑐᑦ ⵜⴰⵎⴰⵣⵉⵖⵜ",
    "𝐁𝐨𝐥𝐝 𝒮𝒸𝓇𝒾𝓅𝓉 𝔉𝔯𝔞𝔨 𝟘𝟙𝟚 𐍈𐌰 𒀀𒀁 𓀀𓂀 𠀀𠀁",
)

_SYMBOLS = (
    "😀😃 👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇫🇷🇯 ❤️ ❤ ☺︎ 1️⃣ #️⃣ 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "🦜" * 50,
    "∀x∈ℝ: ∑_{i=0}^{n} x_i² ≤ ∫₀^∞ e^{−t} dt ⟹ ∂f/∂x ≠ 0 ℵ₀",
    "┌─┬─┐│ │ │└─┴─┘ ▁▂▃▄▅▆▇█ ░▒▓ ⣿⡇",
    "▁ ▁▁ ▁a a▁b Ġ Ċ Ġa Ãł ĠĠ",  # marks that vocabularies use themselves
    "\u0000 \u0001\u001b[31m\u007f\u0080\u009f",
    "\ufffd \ufffd\ufffd \uffff \ufdd0 \ue000 \U0010ffff",
    "a\u0301" * 60,
    "Z\u0351\u036b\u0343\u036a\u0302a\u0334\u0322l\u0348\u0353g\u0321o\u0489",
    "\u202eright to left\u202c \u2066isolate\u2069",
)

_CODE = (
    "def f(x: int) -> str:\n    '''Doc.'''\n    if x:\n\t\treturn f\"{x!r:>{10}}\"\n    return ''  # done\n",
    '#include <stdio.h>\nint main(void) {\n\tprintf("%d\\n", 1 << 3);\n\treturn 0;\n}\n',
    "const f = async (a, b = {}) => ({ ...b, [a]: `${a}\\n` });\n\n\n// ====\n",
    '{"a": [1, 2.5, -3e10, null, true], "b\\u00e9": {"c": "\\"\\\\"}}\n',
    "SELECT * FROM t WHERE a<>'b''c' AND d>=1;--comment\n",
    '<p class="a">x &amp; y</p><!-- -->\n<br/>\n',
    "$$\\frac{a}{b}$$ \\begin{align*} x &= y \\\\ \\end{align*}\n",
    "diff --git a/x b/x\n@@ -1,2 +1,2 @@\n-\told\n+\tnew\n \n",
    "| a | b |\n|---|:-:|\n| 1 |   |\n\n- [ ] x\n  * y\n\n> q\n",
)

_NEARLY_SPECIAL = (
    "<s> </s> <unk> <pad> <mask> [CLS] [SEP] [INST] [/INST] <<SYS>>",
    "<|endoftext|> <|im_start|> <|im_end|> <|eot_id|> <|begin_of_text|> <start_of_turn> <bos> <eos>",
    "<| endoftext |> <|endoftext| |endoftext|> <|ENDOFTEXT|> <|endo\u0301ftext|> < s> <s",
    "<0x0A> <0xE3><0x81><0x82> <think></think> <tool_call> [TOOL_CALLS] <unused0>",
    "<｜begin▁of▁sentence｜> <｜User｜> <|start|>assistant<|channel|>final<|message|>",
)

HARD_TEXTS: tuple[str, ...] = ("", *_NORMALISED, *_SPACES, *_WORDS, *_SYMBOLS, *_CODE, *_NEARLY_SPECIAL)
"""Of every kind some."""
