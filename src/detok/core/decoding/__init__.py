"""How ids become text: rules of a decoder, compiled to streaming stages."""
