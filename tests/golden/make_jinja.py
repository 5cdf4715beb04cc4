#!/usr/bin/env python3
"""Makes jinja.json beside this script: small templates as transformers' Jinja environment renders them.

    python3 -m venv venv && venv/bin/pip install transformers==5.24.0 jinja2
    venv/bin/python tests/golden/make_jinja.py [RENDER_CHATS]

jinja.json: {"variables": {...}, "cases": [{"jinja", "text"} ...]}, where a case may have variables of
its own besides, and instead of a text an "error": true, or what the template says by raise_exception.
With RENDER_CHATS, the program of tests/interop, it writes nothing and lists what dstrain renders
otherwise.
"""
import copy
import json
import pathlib
import subprocess
import sys

import jinja2
from transformers.utils.chat_template_utils import _compile_jinja_template

HERE = pathlib.Path(__file__).resolve().parent

VARIABLES = {
    "n": 7, "z": 0, "m": -3, "f": 2.5, "t": True, "no": False, "nil": None,
    "s": "Hello World", "e": "", "u": "né \U0001f600 ß", "pad": "  pad \n", "html": "<b>\"a\" & 'b'</b>",
    "xs": [3, 1, 2], "empty": [], "words": ["b", "a", "C", "a"],
    "d": {"a": 1, "b": {"c": [1, 2, {"k": "v"}]}, "items": 9, "C": None},
    "rows": [{"n": "x", "v": 2, "g": "A"}, {"n": "y", "v": 1, "g": "b"}, {"n": "z", "v": 3, "g": "a"}],
    "tree": [{"v": 1, "kids": [{"v": 2, "kids": []}, {"v": 3, "kids": [{"v": 4, "kids": []}]}]},
             {"v": 5, "kids": []}],
    "mixed": [None, True, 1.5, "q'", [1, []], {"z": {}}],
}

# Each in its own braces.
EXPRESSIONS = {
    "literals": r"""
        1 | 0 | -1 | +5 | - -3 | 1_000 | 0x1F | 0b101 | 0o17 | 00 | 1.5 | 1e3 | 1.5e-7 | 12e+2 | 1_0.2_5
        true | True | false | False | none | None | 'a' | "a" | 'a' "b" 'c' | '' | [] | {} | ()
        [1, 'a', none] | [1,] | (1,) | (1, 2) | 1, 2 | 1, | {'a': 1} | {'a': 1,} | {1: 2, none: 3, 'x': [4]}
        {'a': 1, 'a': 2} | {1: 'a', true: 'b'} | {(1, 2): 3} | [[1], [2, [3]]] | [(1, 2), {'k': (3,)}]
        (1) | ((1)) | ('a') 'b' | "it's" | 'say "x"' | 'both \' and "' | ['\n\t\\\x00\x7f'] | ['é', '\u00a0', '\U0001f600']
    """,
    "string escapes": r"""
        'a\nb' | "tab\there" | '\\' | '\'' | "\"" | '\x41\u00e9\U0001F600' | '\101\0' | '\q' | '\é' | 'a\
        b' | '\a\b\f\v\r'|length | "{{ x }} {% y %} {# z #}" | '%}' | "}}" | '-}}' | '\/' | 'a''b' | '\d+\.'
    """,
    "arithmetic": r"""
        1 + 2 | 1 - 2 - 3 | 2 * 3 + 4 | 2 + 3 * 4 | 7 / 2 | 6 / 2 | 7 // 2 | -7 // 2 | 7 // -2 | 7 % 3 | -7 % 3
        7 % -3 | -7 % -3 | 7.5 % 2 | -7.5 % 2 | 7.5 // 2 | -7.5 // 2 | 2 ** 3 | 2 ** 3 ** 2 | 2 ** -1 | -2 ** 2 | (-2) ** 2
        2 ** 0.5 | 4 ** 0.5 | 0.1 + 0.2 | 1e16 + 1 | 1 + 1.0 | 3 * 1.0 | true + true | true * 5 | 1 / 3 | 1e100 | 1e22 | 1e21
        123456789012345.0 | 1234567890123456.0 | 12345678901234567.0 | 0.0001 | 0.00001 | 1e-5 | -0.0 | 0.1 | 100.0 | 1e16 | 123456789.125
        n + 1 | n - m | n * f | n / f | n // f | n % f | -n | +n | --n | -n + n | n-1 | n -1 | n+-1 | (n + 1) * 2 | n * (m - 1)
        'a' + 'b' | 'ab' * 3 | 3 * 'ab' | 'ab' * 0 | 'ab' * -1 | [1] + [2, 3] | (1,) + (2,) | [1, 2] * 2 | 2 * [1, 2] | (1,) * 2 | [] + []
        1 // 0 | 1 / 0 | 1 % 0 | 1.0 // 0 | 1 + 'a' | 'a' + 1 | [1] + (2,) | none + 1 | 'a' * 'b' | -'a' | s - 1 | {} + {} | [1] * 1.5
        1 ~ 2 | 'a' ~ 1 ~ none | 1 ~ 2 + 3 | 1 + 2 ~ 3 | 2 * 3 ~ 4 | '' ~ 1.0 | 'a' ~ [1, 'x'] | s ~ '!' ~ n | missing ~ 'x' | true ~ false
        5 - 2 ~ 1 | '1' ~ '2' * 2 | (1 ~ 2) * 2 | 10 % 4 * 2 | 2 * 10 % 4 | 100 // 7 // 2 | 100 / 10 * 2 | 2 - -2 | 5 --2
    """,
    "comparison": r"""
        1 < 2 | 2 <= 2 | 3 > 2 | 2 >= 3 | 1 == 1.0 | 1 != 2 | true == 1 | false == 0 | none == none | none == false | '' == none | 'a' < 'b'
        'a' < 'B' | 'abc' < 'abd' | 'é' > 'z' | [1, 2] < [1, 3] | [1] == [1.0] | (1, 2) == (1, 2) | (1,) == [1] | {'a': 1} == {'a': 1.0} | {} == []
        1 < 2 < 3 | 1 < 3 < 2 | 3 > 2 > 1 > 0 | 1 < 2 == true | 1 == 1 == 1 | 1 < n <= 7 | 1 in [1] == true | 'a' in 'cat' | 'x' in 'cat' | '' in 'cat' | 1 in [1, 2]
        3 not in [1, 2] | 'a' in d | 'x' not in d | not 'a' in d | none in [none] | 1.0 in [1] | [1] in [[1]] | 'a' in ('a',) | 'b' in d.b | not 1 == 2 | not not 1
        1 < 'a' | none < 1 | [1] < 1 | {} < {} | 1 in 'a' | 1 in 5 | 1 in none | 'a' in missing | missing == missing | missing == none | missing != 1 | missing < 1
        1 and 2 | 0 and 2 | 1 or 2 | 0 or '' or 'x' | [] or {} | not [] | not '' | not 0.0 | not none | 1 and 2 or 3 | 0 and 1 or 2 | not 1 and 0 | not (1 and 0) | true and not false
        1 if true | 1 if false | 1 if true else 2 | 1 if false else 2 | 1 if 0 else 2 if 0 else 3 | (1 if 1 else 2) + 1 | 1 + 1 if 1 else 5 | 'a' if s == 'Hello World' else 'b' | [1 if 0 else 2, 3]
        (1 if false) is defined | (1 if false) or 'x' | missing or 'x' | missing and 'x' | not missing | n > 5 and m < 0 | n > 5 and not m < 0 | 'x' if missing else 'y' | 'x' if nil is none else 'y'
    """,
    "subscripts": r"""
        xs[0] | xs[-1] | xs[2] | xs[3] | xs[-4] | xs[true] | xs['0'] | xs.0 | xs.1 | d.a | d['a'] | d.b.c[2].k | d['b']['c'][-1]['k'] | d.x | d['x'] | d[1] | d['items'] | d.C | d['C']
        s[0] | s[-1] | s[99] | u[1] | u[3] | 'abc'[1] | [1, 2][1] | {'a': 5}.a | {'a': 5}['a'] | (1, 2)[0] | xs[1.0] | xs['x'] | d.b['c'].2.k | rows[0].n | rows[1]['v'] | 'abc'.0
        d.get('a') | d.get('x') | d.get('x', 5) | d.get('C', 5) | d.a.b | d.x.y | missing.x | missing['x'] | none.x | nil['x'] | n.x | s.x | xs.x | d.b.x | d.x is defined | d.x.y is defined
        s[:5] | s[6:] | s[-5:] | s[:-6] | s[::2] | s[::-1] | s[8:2:-2] | s[2:8:3] | s[:] | s[99:] | s[:99] | s[-99:3] | s[5:2] | s[none:3] | s[1:none:2] | s[-3::-1] | s[:3:-1] | s[::-3] | s[0:0] | u[2:4] | u[::-1] | e[::-1]
        xs[:2] | xs[1:] | xs[::-1] | xs[-2:] | xs[:-1] | xs[::2] | xs[5:] | xs[1:1] | (1, 2, 3)[1:] | (1, 2, 3)[::-1] | xs[0:2][1] | xs[::0] | s['a':] | n[1:] | nil[1:] | missing[1:] | d[1:] | empty[1:] | empty[0] | range(10)[2:8:3] | range(5)[-1]
    """,
    "tests": r"""
        n is defined | missing is defined | missing is undefined | n is undefined | missing is not defined | d.a is defined | d.x is defined | nil is defined | nil is none | n is none | none is none | missing is none | n is not none
        n is number | f is number | t is number | s is number | n is integer | t is integer | f is integer | f is float | n is float | t is boolean | n is boolean | t is true | no is false | n is true | 1 is true | 0 is false | no is true
        s is string | n is string | d is mapping | xs is mapping | xs is sequence | s is sequence | d is sequence | n is sequence | (1, 2) is sequence | xs is iterable | n is iterable | s is iterable | d is iterable | nil is iterable | missing is iterable | range(3) is iterable
        n is odd | n is even | z is even | m is odd | n is divisibleby 7 | n is divisibleby(2) | n is divisibleby z | n is eq 7 | n is equalto(7) | n == 7 is true | n is ne 7 | n is gt 5 | n is ge 7 | n is lt 5 | n is le(7) | n is greaterthan 6 | n is lessthan 6
        n is in [7] | n is in(xs) | n is not in [7] | 'a' is in 'cat' | 'abc' is lower | 'ABC' is upper | 'aBc' is lower | '' is lower | '1' is upper | s is lower | nil is sameas none | t is sameas true | 1 is sameas true | xs is sameas xs | [1] is sameas [1] | xs is sameas(d.a)
        raise_exception is callable | n is callable | s is callable | range is callable | 'upper' is filter | 'nope' is filter | 'odd' is test | 'nope' is test | s is escaped | (s|safe) is escaped | not n is odd | n is odd and m is odd | n is odd or z is odd | not (n is odd) | n is not odd | n is odd is true
        n is nope | s is odd | nil is odd | f is odd | xs is divisibleby 2 | n is defined and n > 3 | (n + 1) is even | n + 1 is even | xs|length is odd | -1 is odd | 'x' ~ n is string | n is defined if t else 5 | xs is not mapping and xs is iterable | d is mapping and 'a' in d | missing is mapping | missing is string | missing is sequence | nil is string | true is number | true is integer
    """,
    "filters": r"""
        m|abs | 'x'|abs | -3.5|abs | t|abs | s|attr('upper') is defined | d|attr('a') is defined | xs|batch(2)|list | xs|batch(2, 'x')|list | []|batch(2)|list | xs|batch(5, 0)|list | 'heLLo wORLD'|capitalize | ''|capitalize | 5|capitalize | 'élan'|capitalize | 'ab'|center(7) | 'ab'|center(6) ~ '|' | 'abc'|center(2) | ''|center(3) ~ '|' | 'ab'|center|length
        missing|default('x') | missing|default | nil|default('x') | nil|default('x', true) | e|default('x', boolean=true) | 0|d(5, true) | d.x|default(d.a) | d.x.y|default('x') | n|default('x') | missing|d | false|default('x') | no|default('x', true) | missing|default(missing)|default('y')
        {'b': 1, 'a': 2, 'C': 0}|dictsort | {'b': 1, 'a': 2, 'C': 0}|dictsort(true) | {'b': 1, 'a': 2}|dictsort(by='value') | {'b': 1, 'a': 2}|dictsort(reverse=true) | {'b': 1, 'a': 2, 'C': 0}|dictsort(false, 'value', true) | {}|dictsort | {'a': 1}|dictsort(by='x') | xs|dictsort | missing|dictsort
        html|e | html|escape | html|e|e | html|forceescape | html|e|forceescape | html|safe | html|safe|e | 5|e | nil|e | xs|e | html|e|length | missing|e
        xs|first | []|first | 'abc'|first | d|first | missing|first | nil|first | xs|last | []|last | 'abc'|last | d|last | missing|last | (1, 2)|last | {}|first is defined
        '3.5'|float | 'x'|float | 'x'|float(1.5) | 'x'|float(default=2) | 3|float | nil|float | ' 2 '|float | '1e3'|float | 'inf'|float | '-inf'|float | 'nan'|float | '1_0'|float | true|float | '0x10'|float | ''|float | missing|float | xs|float | '.5'|float | '5.'|float
        '42'|int | '4.7'|int | 4.7|int | -4.7|int | 'x'|int | 'x'|int(7) | 'x'|int(default=3) | '0x1f'|int(0, 16) | '1f'|int(0, 16) | '0b11'|int(0, 2) | '17'|int(base=8) | ' 5 '|int | '-5'|int | '+5'|int | '1_000'|int | true|int | nil|int | missing|int | xs|int | ''|int | '1e3'|int | '٣'|int | 1e3|int | '5.'|int
        '%s-%s'|format('a', 1) | '%d%%'|format(5) | '%(a)s'|format(a=1) | 'x'|format | '%s'|format | '%05.2f'|format(3.14159) | '%x'|format(255) | '%s %r'|format('a', 'b') | '%-5s|'|format('a') | '%+d'|format(3)
        rows|groupby('g')|map('first')|list | rows|groupby('g')|map(attribute='grouper')|list | rows|groupby('g')|map(attribute=1)|map('length')|list | rows|groupby('g', case_sensitive=true)|map('first')|list | rows|groupby('x', default='-')|map('first')|list | rows|groupby(attribute='v')|map('first')|list | []|groupby('x')|list
        'a\nb\n\nc'|indent | 'a\nb'|indent(2) | 'a\nb'|indent(2, true) | 'a\nb'|indent(width='> ') | 'a\n\nb'|indent(2, blank=true) | 'a\nb'|indent(2, first=true) | ''|indent | 'a\n'|indent(2) ~ '|' | 'a\r\nb'|indent(1) | 'a'|indent('--', true)
        {'a': 1, 'b': 2}|items|list | missing|items|list | {}|items|list | xs|items|list | d|items|map('first')|list
        xs|join | xs|join(', ') | words|join('-') | rows|join(',', attribute='n') | []|join(',') | 'abc'|join('.') | [1, none, 'x']|join('|') | d|join(',') | xs|join(d=';') | [html|safe, html]|join(' ') | missing|join(',') | nil|join | xs|join(1)
        s|length | xs|length | d|length | ''|length | u|length | n|length | nil|length | missing|length | s|count | (1, 2)|length | range(5)|length | xs|map('abs')|length
        'abc'|list | d|list | (1, 2)|list | range(3)|list | nil|list | missing|list | u|list | xs|list
        'HeLLo ÉΣ'|lower | 5|lower | nil|lower | 'ß'|upper | 'straße'|upper | 'héllo'|upper | 5|upper | missing|upper | [1, 'a']|upper | 'ΑΣ'|lower | 'ΑΣΑ Σ'|lower
        words|map('upper')|list | rows|map(attribute='n')|list | rows|map(attribute='x')|list | rows|map(attribute='x', default='-')|list | rows|map('length')|list | xs|map('string')|join('+') | words|map('replace', 'a', 'X')|list | [[1, 2], [3]]|map('join', '-')|list | [[1, 2], [3]]|map('first')|list | [[1, 2], [3]]|map(attribute=0)|list | rows|map(attribute='n.0')|list | missing|map('upper')|list | xs|map('nope')|list | xs|map|list | nil|map('upper')|list | d.b.c|map('string')|list | [d]|map(attribute='b.c.2.k')|list | words|map('default', 'x')|list | [missing, 1]|map('default', 'x')|list
        xs|max | xs|min | []|max | []|min | words|max | words|min | words|max(case_sensitive=true) | words|min(true) | rows|max(attribute='v') | rows|min(attribute='v') | 'hello'|max | [1, 'a']|max | []|max is defined | [1.5, 1]|min | [true, 0]|max | missing|max
        xs|reject('odd')|list | xs|reject|list | [0, 1, '', 'a']|reject|list | xs|reject('gt', 1)|list | rows|rejectattr('v', 'gt', 1)|map(attribute='n')|list | rows|rejectattr('x')|list|length | xs|select('odd')|list | xs|select|list | [0, 1, none]|select|list | xs|select('gt', 1)|list | xs|select('in', [1, 2])|list | words|select('equalto', 'a')|list | [1, none]|select('none')|list | xs|select('nope')|list | xs|select('defined')|list | rows|selectattr('v', 'eq', 2)|list | rows|selectattr('v')|list|length | rows|selectattr('n', 'in', 'xy')|map(attribute='n')|join | rows|selectattr('x', 'defined')|list | rows|selectattr('x', 'undefined')|list|length | [d]|selectattr('b.c', 'iterable')|list|length | missing|select|list | nil|select('odd')|list | rows|selectattr|list | rows|selectattr('v', '>', 1)|map(attribute='n')|list | rows|selectattr('g', '==', 'A')|map(attribute='n')|first
        'aXbX'|replace('X', '-') | 'aXbX'|replace('X', '-', 1) | 'ab'|replace('', '.') | 'ab'|replace('a', '') | 5|replace('5', '6') | 'aaa'|replace('a', 'b', count=2) | ''|replace('', 'x') | html|replace('<', '&lt;') | s|replace('l', 'L')|replace('L', '1') | nil|replace('N', 'M') | 'aaa'|replace('a', 'b', 0) | 'a'|replace('a') | 'ab'|replace('b', 1)
        'abc'|reverse | xs|reverse|list | u|reverse | []|reverse|list | (1, 2)|reverse|list | nil|reverse | 5|reverse | d|reverse|list
        2.5|round | 3.5|round | 2.567|round(2) | 2.567|round(1, 'floor') | 2.501|round(method='ceil') | -2.5|round | 1234|round(-2) | 1250|round(-2) | 1250.0|round(-2) | 7|round | 7|round(2) | 'x'|round | 2.5|round(0, 'x') | 0.125|round(2) | 2.675|round(2) | 1e20|round | t|round | 2.5|round|int | 42.55|round(1) | 7|round(1, 'floor') | 7|round(method='ceil') | 0.5|round | 1.5|round | -0.4|round
        xs|slice(2)|list | xs|slice(2, 'x')|list | [1, 2, 3, 4, 5]|slice(3)|list | []|slice(2)|list | xs|slice(5, 0)|list | xs|slice(1)|list | 'abcd'|slice(3)|list
        xs|sort | words|sort | words|sort(case_sensitive=true) | words|sort(true) | words|sort(reverse=true) | rows|sort(attribute='v')|map(attribute='n')|list | rows|sort(true, attribute='g')|map(attribute='n')|list | [1, 'a']|sort | []|sort | 'hello'|sort | d|sort | [[2], [1, 5], [1]]|sort | rows|sort(attribute='g,v')|map(attribute='n')|list | [2.5, 1, true]|sort | missing|sort | rows|sort(attribute='x')|length | [none, none]|sort | [(2, 'a'), (1, 'b')]|sort
        5|string | nil|string | s|string | xs|string | 1.0|string | html|safe|string | missing|string | t|string | d|string | u|string
        xs|sum | []|sum | rows|sum(attribute='v') | xs|sum(start=10) | [1.5, 2]|sum | words|sum | [[1], [2]]|sum(start=[]) | xs|sum(none, 5) | [t, t]|sum | missing|sum | rows|sum('v', 1)
        'hello wORLD'|title | "it's a-b (c) x_y"|title | 'a.b'|title | '1a b2'|title | 'élan'|title | ''|title | 5|title | '[a]<b>{c}'|title | 'a\nb\tc'|title
        pad|trim ~ '|' | 'xxaxx'|trim('x') | 'xyaxy'|trim('yx') | '\u3000a\u00a0'|trim | '\x1ca\x1f'|trim | '\u200ba'|trim|length | 5|trim | nil|trim | missing|trim | ''|trim | s|trim('Hd') | '  '|trim ~ '|' | s|trim(chars='H')
        s|truncate(8) | s|truncate(8, true) | s|truncate(8, true, '…') | s|truncate(8, leeway=0) | s|truncate(5, leeway=0) | s|truncate | s|truncate(9, leeway=0, end='') | s|truncate(8, false, '>', 0) | 'aaaaaaaaaaaaaaaaaaaa'|truncate(8, leeway=0) | s|truncate(2, leeway=0) | 'a b c d e f g h'|truncate(9, leeway=0) | u|truncate(3, true, '', 0)
        words|unique|list | [1, 2, 1]|unique|list | words|unique(true)|list | rows|unique(attribute='g')|map(attribute='n')|list | ['a', 'A', 'b']|unique|list | 'abca'|unique|list | []|unique|list | [1, 1.0, true]|unique|list
        xs|nope | s|upper|lower|title | xs|sort|reverse|list|first | (s ~ '!')|upper | s ~ '!'|upper | -m|abs | m|abs + 1 | 2 + m|abs * 2 | 'a'|upper + 'b'|upper | xs|length > 2 | xs|length + 1 | (xs|length, 1) | [xs|first] | {'k': xs|last} | s|lower == 'hello world' | s|upper in ['HELLO WORLD'] | not xs|length | xs|first if xs else 'none' | s|replace('o', '0')|length | xs|join(',')|length|string ~ '!' | rows|map(attribute='v')|sum / 2 | s[:5]|upper | s|upper()[0] | d.b|length | (d.b|items|list)[0][0] | s.upper()|lower | 2**3|string | n|string|length
    """,
    "tojson": r"""
        d|tojson | mixed|tojson | u|tojson | u|tojson(ensure_ascii=true) | html|tojson | 'a"\\\n\t\r\b\f\x00\x1f\x7f/'|tojson | '\u2028\u00a0'|tojson | xs|tojson(indent=2) | d|tojson(indent=4) | {}|tojson(indent=2) | []|tojson(indent=2) | d|tojson(indent=0) | {'a': []}|tojson(indent=2) | [{}]|tojson(indent=1) | [[]]|tojson(indent=2)
        d|tojson(separators=(',', ':')) | d|tojson(indent=2, separators=(',', ': ')) | {'b': 1, 'a': 2}|tojson(sort_keys=true) | {'b': {'d': 1, 'c': 2}, 'a': 2}|tojson(sort_keys=true, indent=1) | {'b': 1, 'a': 2}|tojson | (1, 2)|tojson | 1.0|tojson | 1e100|tojson | 0.1|tojson | -0.0|tojson | nil|tojson | t|tojson | 5|tojson | 'x'|tojson | {1: 2, true: 3, none: 4, 1.5: 5}|tojson | {true: 1}|tojson | {none: 1}|tojson
        missing|tojson | d.x|tojson | range|tojson | xs|map('abs')|tojson | d.items()|tojson | d.items()|list|tojson | {(1, 2): 3}|tojson | [none, true, false]|tojson | u|tojson(true) | d|tojson(false, 2) | [1, [2, [3, {'a': [4]}]]]|tojson(indent=3) | 'é\U0001f600'|tojson(ensure_ascii=true) | '\x7f\x80'|tojson(ensure_ascii=true) | 'inf'|float|tojson | 'nan'|float|tojson | d|tojson(indent=none) | html|safe|tojson | d|tojson|safe | d|tojson|length | rows|map('tojson')|join(';') | {'a': 1}|tojson(separators=none) | xs|tojson(indent='--') | {'k': missing}|tojson | namespace(a=1)|tojson | {'z': 1, 'é': 2, 'a': 3}|tojson(sort_keys=true) | 1e16|tojson | 123456789012|tojson | 1.5e-7|tojson
    """,
    "methods of strings": r"""
        s.upper() | s.lower() | s.title() | s.capitalize() | s.swapcase() | pad.strip() ~ '|' | pad.lstrip() ~ '|' | pad.rstrip() ~ '|' | s.strip('Hd') | s.lstrip('He') | s.rstrip('dl') | 'xxa'.strip('') | s.strip(none) | '\u3000a\u00a0'.strip() | '\u200ba'.strip()|length
        s.split() | s.split('o') | s.split('o', 1) | s.split(' ', maxsplit=1) | ' a  b '.split() | ' a  b '.split(' ') | 'a b c'.split(none, 1) | 'a,b,c'.rsplit(',', 1) | 'a,b,c'.rsplit(',') | ''.split() | ''.split(',') | 'abc'.split('') | 'a\nb\r\nc\u2028d'.splitlines() | 'a\n\nb\n'.splitlines() | 'a\nb'.splitlines(true) | ''.splitlines() | 'a b c'.rsplit(none, 1) | 'a  b c'.rsplit() | 'abc'.split('b')[-1] | 'a</think>b'.split('</think>')[0] | ' a b c '.split(none, 1)[1] | ' a b '.rsplit(none, 1)
        s.startswith('Hello') | s.startswith('x') | s.endswith('World') | s.startswith(('x', 'H')) | s.endswith(('x', 'y')) | s.startswith('') | s.startswith('World', 6) | s.endswith('lo', 0, 5) | s.startswith(5) | s.startswith('o', -7) | ''.startswith('', 1) | s.startswith(['H']) | s.startswith('H', none)
        s.find('o') | s.find('x') | s.rfind('o') | s.index('W') | s.index('x') | s.rindex('l') | u.find('ß') | s.find('o', 5) | s.find('o', 5, 7) | s.rfind('o', 0, 5) | s.find('') | s.rfind('') | s.find('l', -3) | s.index('o', 5) | s.count('l') | s.count('') | s.count('x') | 'aaaa'.count('aa') | s.count('l', 4) | s.count('l', 0, 3)
        s.replace('l', 'L') | s.replace('l', 'L', 1) | s.replace('', '-') | s.replace('x', 'y') | s.replace('l', 'L', -1) | s.replace('Hello ', '') | ','.join(words) | ''.join([]) | ', '.join(['a']) | ','.join('abc') | ','.join([1]) | ','.join(d) | ' '.join(words|map('upper'))
        s.partition(' ') | s.partition('x') | s.rpartition('o') | s.rpartition('x') | s.removeprefix('Hello ') | s.removeprefix('x') | s.removesuffix('ld') | s.removesuffix('') | 'ab'.ljust(4) ~ '|' | 'ab'.rjust(4, '.') | 'ab'.center(5, '*') | 'abc'.center(6, '*') | 'abcd'.center(7, '*') | '42'.zfill(5) | '-42'.zfill(5) | 'abc'.zfill(2) | 'ab'.ljust(1) | 'ab'.ljust(4, 'xy') | 'é'.rjust(3, '→')
        'a1'.isalnum() | 'ab'.isalpha() | '12'.isdigit() | '12'.isdecimal() | '12'.isnumeric() | ''.isdigit() | ' \n'.isspace() | 'ab'.islower() | 'AB'.isupper() | 'Ab Cd'.istitle() | 'ab1'.isalpha() | 'a b'.isalpha() | 'é'.isascii() | 'a1'.isidentifier() | '1.5'.isdigit() | ''.isspace() | 'A1'.isupper() | '1'.islower() | 'a\x00'.isprintable() | 'ABC'.casefold() | 'a\tb'.expandtabs(4) | 'ab'.encode() | 'é'.isalpha() | 'É'.isupper() | 'é'.islower() | '٣'.isdigit() | '\u3000'.isspace()
        '{} {}'.format('a', 1) | '{0}{1}{0}'.format('a', 'b') | '{x}'.format(x=5) | '{{}}'.format() | '{:>5}'.format('a') | '{:05.1f}'.format(3.14) | '{:,}'.format(1234567) | '{:x}'.format(255) | '{!r}'.format('a') | '{}'.format(none) | '{:<4}|'.format('é') | '{:^5}'.format('ab') | '{:+d}'.format(5) | '{:.2%}'.format(0.1234) | '{:e}'.format(12345.678) | '{:*^9}'.format('mid') | '{:b}'.format(5) | '{}'.format(1.0) | '{:d}'.format('a') | '{'.format() | '{}'.format() | '{a}'.format(b=1) | '{:.3}'.format('abcdef') | '{:g}'.format(1e10) | '{:.3g}'.format(1234.5) | '{:08.3f}'.format(-3.14159) | '{:#x}'.format(255) | '{0[0]}'.format(xs) | '{:5}|'.format(5) | '{:5}|'.format('5') | '{: d}'.format(5) | '{0:{1}}'.format('a', 5) | '{:_}'.format(12345) | '{:.2f}'.format(2.675) | '{:.0f}'.format(2.5) | '{:10.4}|'.format(3.14159) | '{:n}'.format(5) | '{:c}'.format(65) | '{!s:>4}'.format(5) | '{:}'.format('a') | '{:s}'.format('a') | '{:%}'.format(0.5) | '{:,.2f}'.format(1234567.891) | '{:.1}'.format(0.25) | '{:G}'.format(1e-10) | '{:X}'.format(255) | '{:o}'.format(8)
        'a'.nope() | 'a'.nope | s.upper is callable | s['upper']() | s.__class__ | ''.upper() ~ '|' | 'ß'.upper() | 'ŉ'.upper() | 'ﬁ'.upper() | 'ǆ'.title() | 'İ'.lower() | "it's".title() | 'x-y z_w'.title() | 'ΑΣ'.lower() | 'aB'.upper().lower() | s.upper().split()[0] | u.upper() | 'ÀÉ'.lower() | 'ab'.translate({97: 'x'}) | 'x'.upper().center(3, '-')
    """,
    "methods of others": r"""
        d.keys()|list | d.values()|list | {'a': 1}.items()|list | d.keys()|length | d.get('a', 0) + 1 | d.copy() == d | {'a': 1}.keys() | {'a': 1}.values() | {'a': 1}.items() | {'a': 1}.get() | {'a': 1}.pop('a') | {'a': 1}.update({}) | {}.setdefault('a', 1) | 'a' in d.keys() | 1 in d.values() | ('a', 1) in {'a': 1}.items()
        xs.append(1) | xs.index(1) | xs.index(9) | xs.count(1) | xs.copy() | xs.pop() | xs.sort() | xs.reverse() | xs.insert(0, 1) | xs.extend([1]) | xs.remove(1) | xs.clear() | (1, 2, 1).count(1) | (1, 2).index(2) | (5).bit_length() | (1.5).is_integer() | n.real | d.nope() | xs.nope() | n.nope() | nil.nope() | missing() | missing.x() | n() | s() | d.a() | xs['append'](1)
        range(3)|list | range(1, 4)|list | range(0, 10, 3)|list | range(3, 0, -1)|list | range(0)|list | range(2, 2)|list | range(3) | range(1, 2, 0) | range('a') | range(1.5) | range(100001)|length | range(3)[1] | 2 in range(3) | dict(a=1) | dict({'a': 1}, b=2) | dict([('a', 1)]) | dict() | dict(a=1).a | namespace(a=1).a | namespace().x is defined | namespace({'a': 2}, b=3).b | joiner(',') is callable | raise_exception('bad ' ~ n) | raise_exception() | raise_exception(5) | raise_exception('é "q"') | cycler(1, 2).next() | lipsum is callable | range(3, none) | dict(1) | namespace(1) | dict(**{'a': 1}) | dict(a=1, **{'b': 2}) | range(*[1, 3])|list
    """,
    "printf": r"""
        '%s' % 1 | '%s' % 'a' | '%s %s' % (1, 'b') | '%d' % 3.7 | '%5d|' % 42 | '%-5d|' % 42 | '%05d' % 42 | '%+d' % 42 | '% d' % 42 | '%x' % 255 | '%X' % 255 | '%#x' % 255 | '%o' % 8 | '%e' % 12345.678 | '%.2f' % 3.14159 | '%.0f' % 2.5 | '%g' % 1e10 | '%g' % 0.0001 | '%G' % 1e-10 | '%5.1f|' % 3.14159 | '%r' % 'a' | '%c' % 65 | '%c' % 'x' | '%%' % () | '%5s|' % 'é' | '%.2s' % 'abc' | '%-5s|' % 'a' | '%(a)d' % d | '%(x)s' % d | '%s' % d.x | '%s' % none | '%s' % [1] | '%s' % (1, 2) | '%d' % 'a' | '%s' % missing | '%s %s' % 1 | '%' % 1 | '%z' % 1 | 'x' % () | 'x' % 1 | '%i' % 5 | '%u' % 5 | '%5%' % () | '%s' % true | '%d' % true | '%.3d' % 5 | '%*d' % (5, 3) | '%s' % 1.0 | '%s' % (html|safe) | '%.1f%%' % 12.34 | '%a' % 'é' | '%s' % {'a': 1} | '%e' % 0 | '%f' % 1 | '%F' % 1.5 | '%010.3f' % -3.14159 | '%+.1e' % 12345 | '%#o' % 8 | '%ld' % 5
    """,
    "markup": r"""
        html|safe ~ '<' | html|safe + '<' | '<' + (html|safe) | (html|safe) * 2 | (html|safe)|upper | (html|safe)|length | (html|safe).upper() | (html|safe) == html | ['<'|safe] | ('<'|safe)|string + '<' | ('<%s>'|safe) % '&' | ('<'|safe).join(['&', '>']) | '&'.join(['<'|safe]) | ('<'|safe).replace('<', '>') | ('<'|safe)|replace('<', '&') | ('a'|safe) in 'cat' | ('<a>'|safe).split('a') | ('<'|safe) ~ none | ('<'|e) ~ '>' | ('<'|e) + '>' | ('<{}>'|safe).format('&') | ('a b'|safe)|title | ('<'|safe)[0] | (' <'|safe).strip() + '<' | ('a'|safe)|trim + '<' | ('<'|safe)|list | ('<'|safe)|first + '<' | ('<'|safe).lower() + '<' | {'<'|safe: 1}['<'] | ('<'|safe)|indent(2, true) | ('<'|safe)|default('x') + '<' | ('<'|safe)|center(5) | ('<'|safe)|format | ('<'|safe)|reverse + '<' | ('<'|safe)|capitalize + '<' | ['<'|safe, '>']|join + '&' | ('<'|safe)|truncate(5) + '<' | ('<%s'|safe)|format('>') | ('<'|safe).splitlines()[0] + '<' | ('<'|safe).partition('<')[1] + '<' | ('<' ~ '<'|safe) + '<' | ('<'|safe)|tojson + '<' | (('<'|safe)|string)|e
    """,
    "calls": r"""
        range(stop=3) | d.get(key='a') | s.split(sep='o') | s.replace('o', '0', count=1) | s.upper(1) | xs|join(', ', 'x', 'y') | xs|join(nope=1) | s|upper(1) | dict(a=1, a=2) | s.startswith(prefix='H') | xs|sort(nope=1) | s|replace(old='o', new='0') | s|default(default_value='x') | missing|default(default_value='x', boolean=false) | xs|first(1) | xs|map(attribute='a', nope=1)|list | s.strip(chars='H') | s.splitlines(keepends=true) | s.center(width=20) | ','.join(iterable=xs) | 'a'.ljust(3, fillchar='x') | xs|batch(linecount=2)|list | s|truncate(length=5, killwords=true, end='', leeway=0) | s|indent(s='x') | xs|sum(attribute=none, start=1) | xs|tojson(nope=1) | xs|unique(nope=1)|list
    """,
}

TEMPLATES = {
    "output": ["", "plain", "a{{ 1 }}b", "{{1}}", "{{ 1 }}{{ 2 }}", "{{ missing }}|", "{{ nil }}", "{{ t }}{{ no }}", "{{ xs }}", "{{ d.b }}", "{{ mixed }}", "{{ u }}", "{{ 1.0 }}", "{ { } }", "{", "}}", "%}", "{}", "#}", "{{ '}}' }}", "{{ '{{' }}", "é\U0001f600{{ u }}", "a\r\nb\rc", "x\n", "x\n\n", "\n", "{{ 'a\nb' }}", "{{ 'a\r\nb' }}", "{{\n1\n}}", "{{ {'a': {'b': 1}}['a']['b'] }}", "{{ {'a': 1}}}", "{{ [1,2][0] }}", "{{ }}", "{{ 1", "{{ 1 }", "{{ 'x }}", "{{ 1 2 }}", "{{ (1 }}", "{{ 1) }}", "{{ [1) }}", "{{ a b }}", "{{ = }}", "{{ 1 + }}", "{{ .a }}", "{{ a. }}", "{{ a.'b' }}", "{{ $ }}", "{{ a ? b }}", "{{ `a` }}", "{{ a & b }}", "{{ a; b }}", "{{ not }}", "{{ if }}", "{{ for }}", "{{ x.if }}", "{{ d.not }}|", "{{ d|default }}", "{{ a!b }}", "{{ loop }}|", "{{ caller }}|", "{{ varargs }}|", "{{ _x }}|", "{{ é }}|", "{{ é1 }}{% set é1 = 2 %}{{ é1 }}", "{{ true }}{{ TRUE }}|", "{{ n.__class__ }}|", "{{ xs.__len__ }}|", "{{ 'a'.__add__('b') }}", "{{ ''.join.__self__ }}|"],
    "white space": [
        "a\n{% if t %}\nb\n{% endif %}\nc", "a\n  {% if t %}\n  b\n  {% endif %}\nc", "a  {% if t %}  b  {% endif %}  c", "a {%- if t %} b {%- endif %} c", "a {% if t -%} b {% endif -%} c", "a\n\n{%- if t -%}\n\nb\n\n{%- endif -%}\n\nc", "a {{- 1 -}} b", "a {{ 1 }}\nb", "a\n  {{ 1 }}\nb", "a\n  {{- 1 -}}  \nb",
        "a\n  {%+ if t %}\nb{% endif %}", "a\n  {% if t +%}\nb{% endif %}", "  {%+ if t +%}\n  x\n  {%+ endif +%}\n", "a {{+ 1 }} b", "a {{ 1 +}} b", "a{# c #}b", "a {#- c -#} b", "a\n  {# c #}\nb", "a\n{# c #}  \nb", "a\n  {#+ c +#}\nb", "{# a\nb #}x", "{#-#}x", "{##}x", "a {#--#} b", "{# {{ x }} {% y %} #}x", "{# {# #} #}",
        "{% if t %}\n\n\nx\n{% endif %}\n\n", "\t{% if t %}x{% endif %}\t\n", "x\t{% if t %}y{% endif %}", "\u00a0{% if t %}x{% endif %}", "\u3000\n{%- if t %}x{% endif %}", "a\x0b{%- if t %}b{% endif %}", "\x1c{%- if t -%}\x1fx{% endif %}", "{% if t %}\r\nx{% endif %}\r\ny", "a\r{% if t %}b{% endif %}", "{%- if t -%}{%- endif -%}x", "{%if t%}x{%endif%}", "{%-if t-%}x{%-endif-%}", "{%\nif\nt\n%}x{%\nendif\n%}", "  {% set x = 1 %}  \n  {{ x }}", "  {% set x = 1 %}\n  {% set y = 2 %}\n{{ x }}{{ y }}", "{% for i in xs %}\n  {{ i }}\n{% endfor %}", "{%- for i in xs %}\n  {{- i }}\n{%- endfor %}", "{% for i in xs -%}\n  {{ i }},\n{%- endfor %}!", "\n{{ 1 }}\n", "{{ 1 -}}\n\n  x", "x\n\n  {{- 1 }}", "{{ -1 }}", "{{- -1 -}}", "{{-1}}", "{{ 1-}}", "{{ 1 - }}", "a{{ 'x' -}} \n\t b", "{{ '\n' }}{%- if t %}x{% endif %}", "x {{ '' }} {%- if t %}y{% endif %}", "{% if t %} {% endif %}|", "{% if t %}\n{% endif %}|", "  {%- if t %}x{% endif %}", " \n {% if t %}x{% endif %}", " x\n {% if t %}y{% endif %}\n z", "{# c -#}\n\n x", "x \n{#- c #}\ny", "{{ 1 }}\n\n{{ 2 }}", "{{ 1 }}\n{% if t %}\n{{ 2 }}\n{% endif %}\n{{ 3 }}", "{% if t %}a{% endif %}\nb{% if t %}\nc{% endif %}",
    ],
    "raw": ["{% raw %}{{ x }}{% if %}{# c #}{% endraw %}", "a {%- raw -%} b {%- endraw -%} c", "a\n{% raw %}\nb\n{% endraw %}\nc", "  {% raw %}\n  {{ x }}\n  {% endraw %}\nx", "{%raw%}a{%endraw%}", "{% raw %}", "{% raw %}{% endra %}{% endraw %}", "{%- raw %} a {% endraw -%} b", "{% raw -%} a {%+ endraw %}", "{% raw %}\n\n{% endraw %}\n|", "{% raw %}%}{% endraw %}", "{% raw x %}{% endraw %}", "{% raw %}a{% endraw +%}\nb", "{%+ raw %}a{% endraw %}", "  {%+ raw %}a{% endraw %}", "x\n\t{% raw %}a\n \t{% endraw %}b"],
    "if": ["{% if n > 5 %}a{% endif %}", "{% if n > 9 %}a{% else %}b{% endif %}", "{% if n > 9 %}a{% elif n > 5 %}b{% elif true %}c{% else %}d{% endif %}", "{% if no %}a{% elif no %}b{% endif %}|", "{% if xs %}a{% endif %}{% if empty %}b{% endif %}", "{% if missing %}a{% else %}b{% endif %}", "{% if d.x.y %}a{% endif %}", "{% if 1, 2 %}a{% endif %}", "{% if %}{% endif %}", "{% if t %}a", "{% if t %}a{% endfor %}", "{% endif %}", "{% else %}", "{% if t %}a{% else %}b{% else %}c{% endif %}", "{% if t %}{% if no %}a{% else %}b{% endif %}c{% endif %}", "{% if not t %}a{% else %}b{% endif %}", "{% if t and not no or z %}a{% endif %}", "{% if s is string and s|length > 3 %}a{% endif %}", "{% if t %}a{% elseif t %}b{% endif %}", "{% nope %}", "{% %}", "{% if t %}{% set q = 1 %}{% endif %}{{ q }}", "{% if no %}{% set q = 1 %}{% endif %}{{ q }}|", "{% if t %}{% set n = 1 %}{% endif %}{{ n }}", "{% if no %}{% set n = 1 %}{% else %}{% set n = 2 %}{% endif %}{{ n }}", "{% if t %}a{% endif t %}"],
    "for": ["{% for x in xs %}{{ x }},{% endfor %}", "{% for x in empty %}a{% else %}none{% endfor %}", "{% for x in xs %}a{% else %}none{% endfor %}", "{% for x in missing %}a{% else %}none{% endfor %}", "{% for x in nil %}a{% endfor %}", "{% for x in n %}a{% endfor %}", "{% for c in 'né' %}[{{ c }}]{% endfor %}", "{% for k in d %}{{ k }},{% endfor %}", "{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k, v in {'a': 1}|items %}{{ k }}={{ v }}{% endfor %}", "{% for (a, b) in [(1, 2)] %}{{ a }}{{ b }}{% endfor %}", "{% for a, b in [[1, 2], [3, 4]] %}{{ a + b }},{% endfor %}", "{% for a, b in [[1]] %}{% endfor %}", "{% for a, b in [1] %}{% endfor %}", "{% for a, in [[1], [2]] %}{{ a }}{% endfor %}", "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}", "{% for x in [1, 2] + [3] %}{{ x }}{% endfor %}", "{% for x in xs if x > 1 %}{{ loop.index }}:{{ x }},{% endfor %}", "{% for x in xs if x > 9 %}a{% else %}none{% endfor %}", "{% for x in xs if x is odd and x != 3 %}{{ x }}{% endfor %}", "{% for x in (xs if t else empty) %}{{ x }}{% endfor %}", "{% for x in xs|sort %}{{ x }}{% endfor %}", "{% for x in xs[1:] %}{{ x }}{% endfor %}", "{% for x in range(3) %}{{ x }}{% endfor %}", "{% for x in xs|map('string') %}{{ x }}{% endfor %}", "{% for x in xs %}{% for y in [1, 2] %}{{ x * y }} {% endfor %}{% endfor %}",
            "{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }};{% endfor %}", "{% for x in xs %}{{ loop.previtem }}|{{ loop.nextitem }};{% endfor %}", "{% for x in xs %}{{ loop.previtem is defined }}{{ loop.nextitem is undefined }};{% endfor %}", "{% for x in xs %}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}", "{% for x in xs %}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }},{% endfor %}", "{% for x in [1, 1, 2] %}{% if loop.changed(x, 'k') %}{{ x }}{% endif %}{% endfor %}", "{% for x in xs %}{{ loop.nope }}|{% endfor %}", "{% for x in xs %}{{ loop.cycle() }}{% endfor %}", "{% for x in xs %}{% set outer = loop %}{% for y in [1, 2] %}{{ outer.index }}.{{ loop.index }} {% endfor %}{% endfor %}", "{% for x in xs %}{% for y in [loop.index] %}{{ y }}{% endfor %}{% endfor %}", "{% for x in xs %}{% if not loop.last %}{{ x }}, {% else %}{{ x }}{% endif %}{% endfor %}", "{% for x in xs %}{{ loop.index > 1 and x }},{% endfor %}", "{% for x in xs %}{{ loop|length }}{% endfor %}", "{{ loop.index }}", "{% for x in xs %}{% endfor %}{{ loop }}|", "{% for x in xs %}{{ loop is iterable }}{{ loop is mapping }}{% endfor %}", "{% for loop in xs %}{{ loop }}{% endfor %}", "{% for x in xs if loop.index > 1 %}{{ x }}{% endfor %}", "{% for x in xs|reverse %}{{ loop.length }}{{ x }};{% endfor %}", "{% for x in xs %}{{ loop.index ~ '/' ~ loop.length }} {% endfor %}", "{% for x in d.b.c %}{{ x }};{% endfor %}", "{% for x in xs %}{{ loop.revindex }}{% break %}{% endfor %}",
            "{% for n in tree recursive %}{{ n.v }}{% if n.kids %}({{ loop(n.kids) }}){% endif %}{% endfor %}", "{% for n in tree recursive %}{{ loop.depth }}{{ loop.index }}{{ loop(n.kids) }}{% endfor %}", "{%- for n in tree recursive %}\n{{ '  ' * loop.depth0 }}- {{ n.v }}{{ loop(n.kids) }}{%- endfor %}", "{% for n in tree %}{{ loop(n.kids) }}{% endfor %}", "{% for n in tree recursive %}{{ n.v }}{{ loop(n.kids)|upper }}{% else %}.{% endfor %}", "{% for n in tree recursive %}{% set k = n.kids %}{{ n.v }}{{ loop(k) }}{{ k|length }}{% endfor %}", "{% for n in tree if n.v > 1 recursive %}{{ n.v }}{{ loop(n.kids) }}{% endfor %}",
            "{% for x in xs %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in xs %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "{% for x in xs %}{% for y in xs %}{% if y == 1 %}{% break %}{% endif %}{{ y }}{% endfor %};{% endfor %}", "{% break %}", "{% continue %}", "{% for x in xs %}{% break %}{% else %}e{% endfor %}|", "{% for x in xs %}{% set y = x %}{% continue %}z{% endfor %}|", "{% for x in xs %}{% with y = x %}{% if y == 1 %}{% break %}{% endif %}{{ y }}{% endwith %}{% endfor %}", "{% for x in xs %}{% else %}{% break %}{% endfor %}", "{% for x in %}{% endfor %}", "{% for in xs %}{% endfor %}", "{% for x xs %}{% endfor %}", "{% for x.y in xs %}{% endfor %}", "{% for 1 in xs %}{% endfor %}", "{% for x in xs %}", "{% for x in xs %}{% endif %}", "{% for x in xs if %}{% endfor %}", "{% for true in xs %}{% endfor %}"],
    "scopes": ["{% set x = 1 %}{% for i in xs %}{% set x = i %}{{ x }}{% endfor %}{{ x }}", "{% for i in xs %}{{ x is defined }}{% set x = i %}{% endfor %}", "{% for i in xs %}{% set x = i %}{% endfor %}{{ x }}|", "{% set ns = namespace(x=0) %}{% for i in xs %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}", "{% set ns = namespace() %}{% set ns.a = 1 %}{% set ns.b = ns.a + 1 %}{{ ns.a }}{{ ns.b }}{{ ns.c }}|", "{% set ns = namespace(x=[]) %}{% for i in xs %}{% set ns.x = ns.x + [i] %}{% endfor %}{{ ns.x }}", "{% set ns = namespace(a=1) %}{% set other = ns %}{% set other.a = 2 %}{{ ns.a }}", "{% set d.a = 2 %}", "{% set nope.a = 2 %}", "{% set ns = namespace(a=1) %}{{ ns['a'] }}{{ ns.a }}{{ ns.b is defined }}", "{% set ns = namespace(a=1) %}{{ ns.a.b }}|", "{% set ns = namespace(_a=1) %}", "{% set ns = namespace(a=1) %}{% set ns._b = 1 %}", "{% set ns = namespace(items=1, get=2) %}{{ ns.items }}{{ ns.get }}",
               "{% set x = 1 %}{{ x }}{% set x = x + 1 %}{{ x }}", "{% set n = n + 1 %}{{ n }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a, b = [1, 2] %}{{ b }}{{ a }}", "{% set a, b = 1 %}", "{% set a, b = (1, 2, 3) %}", "{% set (a, b) = (1, 2) %}{{ a }}{{ b }}", "{% set a, (b, c) = 1, (2, 3) %}{{ c }}", "{% set x = 1, 2 %}{{ x }}", "{% set x = 1, %}{{ x }}", "{% set x %}a{{ n }}b{% endset %}{{ x }}", "{% set x | upper %}a{{ n }}b{% endset %}{{ x }}", "{% set x | trim | replace('a', 'c') %} a {% endset %}{{ x }}|", "{% set x %}<{% endset %}{{ x + '<' }}", "{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y }}|", "{% set x %}\n a\n{% endset %}[{{ x }}]", "{% set ns = namespace(a=1) %}{% set ns.a %}block{% endset %}{{ ns.a }}", "{% set x %}{% endset %}{{ x }}|{{ x is defined }}{{ x|length }}", "{% set x = %}", "{% set = 1 %}", "{% set 1 = 1 %}", "{% set x 1 %}", "{% set x %}", "{% set true = 1 %}", "{% set x.y.z = 1 %}", "{% set x['a'] = 1 %}", "{% set x = missing %}{{ x }}|{{ x is defined }}", "{% set x = missing.y %}", "{% set x = 5 if no %}{{ x is defined }}",
               "{% with x = 1 %}{{ x }}{% endwith %}{{ x }}|", "{% with x = 1, y = 2 %}{{ x }}{{ y }}{% endwith %}", "{% with x = 1, y = x %}{{ y }}|{% endwith %}", "{% with %}{% set x = 1 %}{{ x }}{% endwith %}{{ x }}|", "{% with n = n + 1 %}{{ n }}{% endwith %}{{ n }}", "{% with a, b = (1, 2) %}{{ a }}{{ b }}{% endwith %}", "{% with x = 1 %}{% with x = 2 %}{{ x }}{% endwith %}{{ x }}{% endwith %}", "{% with x = 1, %}{{ x }}{% endwith %}", "{% filter upper %}{% set x = 'a' %}{{ x }}b{% endfilter %}{{ x }}|", "{% filter upper|replace('B', 'c') %}ab{% endfilter %}", "{% filter indent(2) %}a\nb{% endfilter %}", "{% filter trim %}\n a {{ n }} \n{% endfilter %}|", "{% filter nope %}{% endfilter %}", "{% filter escape %}<{% endfilter %}", "{% filter upper %}{% if t %}a{% endif %}{% for x in xs %}b{{ x }}{% endfor %}{% endfilter %}",
               "{% if t %}{% for i in [1] %}{% set q = 2 %}{% endfor %}{% endif %}{{ q }}|", "{% for i in [1, 2] %}{% if i == 1 %}{% set q = 'a' %}{% endif %}{{ q }}|{% endfor %}", "{% set q = 0 %}{% for i in [1, 2] %}{{ q }}{% set q = q + 1 %}{{ q }}{% endfor %}{{ q }}", "{% set q = 0 %}{% for i in [1, 2] %}{% if i == 1 %}{% set q = 5 %}{% endif %}{{ q }}{% endfor %}{{ q }}", "{% for n in xs %}{{ n }}{% endfor %}{{ n }}", "{% for i in xs %}{{ i }}{% endfor %}{{ i }}|", "{% for x in xs %}{% set xs = [9] %}{{ x }}{% endfor %}{{ xs }}", "{% for i in [1, 2] %}{% for j in [1, 2] %}{% set q = j %}{% endfor %}{{ q }}|{% endfor %}", "{% set q = 1 %}{% with %}{% set q = 2 %}{% endwith %}{{ q }}", "{% set messages = xs[1:] %}{% for m in messages %}{{ m }}{% endfor %}", "{% set xs = xs[1:] %}{{ xs }}", "{% if n %}{% set z = 4 %}{% endif %}{{ z }}", "{% set a = 1 %}{% set b = a %}{% set a = 2 %}{{ b }}", "{% generation %}{% set q = 1 %}{{ q }}{% endgeneration %}{{ q }}|", "a{% generation %}{{ n }}{% endgeneration %}b", "{% for x in xs %}{% generation %}{{ x }}{{ loop.index }}{% endgeneration %}{% endfor %}", "{% generation %}\n a \n{% endgeneration %}\nb", "{% set x %}{% generation %}a{% endgeneration %}{% endset %}{{ x }}", "{% generation %}"],
    "macros": ["{% macro m() %}a{% endmacro %}{{ m() }}{{ m() }}", "{% macro m(a, b) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(b=5, a=4) }}", "{% macro m(a, b=a) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }}", "{% macro m(a) %}{{ a is defined }}{{ a }}|{% endmacro %}{{ m() }}", "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(b=2) }}", "{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}", "{% macro m(a) %}{{ a }}{{ varargs }}{% endmacro %}{{ m(1, 2, 3) }}", "{% macro m(a) %}{{ a }}{{ kwargs }}{% endmacro %}{{ m(1, b=2) }}", "{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}x{% endcall %}", "{% macro m(a) %}[{{ caller(a) }}]{% endmacro %}{% call(v) m(5) %}{{ v + 1 }}{% endcall %}", "{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b=3) m() %}{{ a }}{{ b }}{% endcall %}", "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}", "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}", "{% macro m() %}{% if caller %}{{ caller() }}{% endif %}x{% endmacro %}{% call m() %}y{% endcall %}", "{% macro m() %}<{{ caller() }}>{% endmacro %}{% set q = 'in' %}{% call m() %}{{ q }}{{ n }}{% endcall %}",
               "{% macro m(t) %}{{ t.v }}{% for k in t.kids %}{{ m(k) }}{% endfor %}{% endmacro %}{{ m(tree[0]) }}", "{% macro f(n) %}{{ 1 if n < 2 else n * f(n - 1)|int }}{% endmacro %}{{ f(5) }}", "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}x{% endmacro %}{{ a() }}", "{{ m() }}{% macro m() %}a{% endmacro %}", "{% macro m() %}{{ n }}{% endmacro %}{% set n = 1 %}{{ m() }}", "{% macro m() %}{{ q }}|{% endmacro %}{% set q = 1 %}{{ m() }}", "{% set q = 1 %}{% macro m() %}{{ q }}{% set q = 2 %}{{ q }}{% endmacro %}{{ m() }}{{ q }}", "{% for i in xs %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}", "{% macro m() %}{{ i }}|{% endmacro %}{% for i in xs %}{{ m() }}{% endfor %}", "{% macro m() %}{{ loop }}|{% endmacro %}{% for i in xs %}{{ m() }}{% endfor %}", "{% if t %}{% macro m() %}a{% endmacro %}{% endif %}{{ m() }}", "{% if no %}{% macro m() %}a{% endmacro %}{% endif %}{{ m() }}", "{% macro m() %}\n  a\n{% endmacro %}[{{ m() }}]", "{%- macro m() -%}\n  a\n{%- endmacro -%}\n[{{ m() }}]", "{% macro m() %}a{% endmacro m %}{{ m() }}", "{% macro m() %}a{% endmacro %}{{ m()|upper }}{{ m() ~ 'b' }}{{ m() + 'c' }}{{ m()|length }}", "{% macro m() %}<{% endmacro %}{{ m() + '<' }}{{ m() ~ '<' }}{{ m()|e }}", "{% macro m() %}a{% endmacro %}{{ m.name }}{{ m.arguments }}", "{% macro m(a, b=1) %}{{ caller }}{% endmacro %}{{ m.arguments }}{{ m.catch_kwargs }}{{ m.catch_varargs }}{{ m.caller }}", "{% macro m() %}a{% endmacro %}{{ m is callable }}{{ m is defined }}{{ m is string }}", "{% macro m(x) %}{{ x }}{% endmacro %}{{ xs|map('string')|map('upper')|list }}{{ m(m(1)) }}", "{% macro m(x) %}{% for y in x %}{{ y }}{{ loop.last }}{% endfor %}{% endmacro %}{{ m(xs) }}", "{% macro m(ns) %}{% set ns.a = ns.a + 1 %}{% endmacro %}{% set ns = namespace(a=0) %}{{ m(ns) }}{{ m(ns) }}{{ ns.a }}", "{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(**{'a': 3, 'b': 4}) }}{{ m(1, **{'b': 2}) }}{{ m(*[1], b=2) }}", "{% macro m(a=[]) %}{{ a }}{% endmacro %}{{ m() }}", "{% macro m(a=1, b) %}{% endmacro %}", "{% macro m(a, a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m %}{% endmacro %}", "{% macro %}{% endmacro %}", "{% macro m( %}{% endmacro %}", "{% macro m() %}", "{% call n() %}{% endcall %}", "{% call n %}{% endcall %}", "{% call nope() %}{% endcall %}", "{% macro m() %}{% break %}{% endmacro %}", "{% for x in xs %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "{% macro m(n) %}{{ n }}{% if n > 0 %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(3) }}", "{% macro m() %}{% set x = 1 %}{% endmacro %}{{ m() }}{{ x }}|", "{% macro outer() %}{% macro inner() %}i{% endmacro %}{{ inner() }}{% endmacro %}{{ outer() }}", "{% macro m(v=n) %}{{ v }}{% endmacro %}{{ m() }}{% set n = 2 %}{{ m() }}", "{% set f = m %}{% macro m() %}a{% endmacro %}{{ f is defined }}", "{% macro m() %}a{% endmacro %}{% set f = m %}{{ f() }}", "{% macro m() %}a{% endmacro %}{{ {'k': m}['k']() }}{{ [m][0]() }}", "{% macro m(x, y='d') %}{{ x }}{{ y }}{% endmacro %}{% call m('a') %}{% endcall %}", "{% macro m(a) -%} {{ a }} {%- endmacro %}|{{ m(1) }}|", "{% macro m(a) %}{{ a|default('none') }}{% endmacro %}{{ m() }}", "{% macro m(a=none) %}{{ a is none }}{% endmacro %}{{ m() }}{{ m(1) }}", "{% macro a(x) %}{{ caller(x) }}{% endmacro %}{% macro b(x) %}{% call(y) a(x) %}{{ y }}{{ caller() }}{% endcall %}{% endmacro %}{% call b(1) %}in{% endcall %}", "{% for x in xs %}{% call(y) mm(x) %}{% endcall %}{% endfor %}", "{% macro m() %}{{ raise_exception('in macro') }}{% endmacro %}{{ m() }}", "{% macro m(x) %}{% if x %}{{ x }}{% else %}{{ raise_exception('no x') }}{% endif %}{% endmacro %}{{ m(0) }}"],
    "functions": ["{% set j = joiner(', ') %}{% for x in xs %}{{ j() }}{{ x }}{% endfor %}", "{% set j = joiner() %}{{ j() }}a{{ j() }}b{{ j() }}", "{{ raise_exception('stop') }}", "a{% if n > 5 %}{{ raise_exception('n is ' ~ n ~ '!') }}{% endif %}", "{% if no %}{{ raise_exception('stop') }}{% endif %}ok", "{{ raise_exception('') }}", "{{ raise_exception(xs) }}", "{{ raise_exception(message='named') }}", "{% set x = raise_exception('set') %}", "{% for i in range(3) %}{% if i == 2 %}{{ raise_exception(i) }}{% endif %}{% endfor %}", "{{ raise_exception('a\nb\u2028c') }}", "{{ [1, raise_exception('in list')] }}", "{{ no and raise_exception('x') }}", "{{ 1 if t else raise_exception('x') }}", "{% include 'x' %}", "{% extends 'x' %}", "{% import 'x' as y %}", "{% do xs %}", "{% set raise_exception = 1 %}{{ raise_exception }}", "{{ raise_exception }}{{ 1/0 }}"],
    "undefined": ["{{ missing + 1 }}", "{{ 1 + missing }}", "{{ missing + 'a' }}", "{{ missing * 2 }}", "{{ -missing }}", "{{ missing() }}", "{{ missing.a }}", "{{ missing[0] }}", "{{ missing|length }}", "{{ missing|upper }}|", "{{ missing|list }}", "{{ missing|first }}|", "{{ missing|join }}|", "{{ missing == '' }}", "{{ missing in [1] }}", "{{ 1 in missing }}", "{{ missing is none }}", "{{ missing if missing else 'x' }}", "{{ missing and 1 }}|", "{{ [missing] }}", "{{ {'a': missing} }}", "{{ missing|string }}|", "{{ missing|int }}", "{{ missing|tojson }}", "{{ missing|trim }}|", "{{ d.x.upper() }}", "{{ d.x|upper }}|", "{{ d.x + 'a' }}", "{{ 'a' + d.x }}", "{{ 'a' ~ d.x }}", "{% for x in d.x %}a{% endfor %}|", "{{ d.x|length > 0 }}", "{{ d.x > 0 }}", "{{ d.x == none }}{{ d.x != none }}", "{{ d['x'] is not none }}", "{{ nil + 'a' }}", "{{ nil ~ 'a' }}", "{{ nil|length }}", "{{ nil.x.y }}", "{{ (d.x or {}).y }}|", "{{ (d.x|default({})).y }}|", "{{ missing|default('a') ~ missing|default('b') }}", "{{ xs[9].y }}", "{{ s.nope.x }}", "{{ 'a'.startswith(missing) }}", "{{ 'a' in missing }}", "{{ missing.startswith('a') }}", "{{ missing is string and missing.startswith('a') }}", "{{ missing|replace('a', 'b') }}|", "{{ 'a'.replace('a', missing) }}", "{{ range(missing) }}", "{{ missing|items|list }}", "{{ missing|dictsort }}", "{{ missing|map('upper')|list }}", "{{ missing|selectattr('a')|list }}", "{{ missing|sum }}", "{{ missing|e }}|", "{{ missing|capitalize }}|", "{{ missing[1:] }}", "{{ not missing }}", "{{ missing is defined and missing.x }}", "{{ missing.x is defined }}", "{{ d.x.y is defined }}", "{{ xs[missing] }}|", "{{ d[missing] }}|"],
}

# Those that dstrain renders otherwise: what no chat template is known to use. They are not in the file.
OTHERWISE = {
    '{% for a, in [[1], [2]] %}{{ a }}{% endfor %}',
    '{{ range(10)[2:8:3] }}',
    '{{ n is defined if t else 5 }}',
    "{{ '٣'|int }}",
    "{{ xs|tojson(indent='--') }}",
    '{{ s.swapcase() }}',
    "{{ 'a1'.isidentifier() }}",
    "{{ 'a\\x00'.isprintable() }}",
    "{{ 'ABC'.casefold() }}",
    "{{ 'a\\tb'.expandtabs(4) }}",
    "{{ 'ab'.encode() }}",
    "{{ 'é'.isalpha() }}",
    "{{ 'É'.isupper() }}",
    "{{ 'é'.islower() }}",
    "{{ '٣'.isdigit() }}",
    "{{ '{0[0]}'.format(xs) }}",
    "{{ '{0:{1}}'.format('a', 5) }}",
    "{{ '{:c}'.format(65) }}",
    "{{ 'ŉ'.upper() }}",
    "{{ 'ﬁ'.upper() }}",
    "{{ 'ab'.translate({97: 'x'}) }}",
    "{{ {'a': 1}.keys() }}",
    "{{ {'a': 1}.values() }}",
    "{{ {'a': 1}.items() }}",
    '{{ (5).bit_length() }}',
    '{{ (1.5).is_integer() }}',
    '{{ n.real }}',
    '{{ range(3) }}',
    '{{ cycler(1, 2).next() }}',
    '{{ lipsum is callable }}',
    "{{ '%c' % 65 }}",
    "{{ '%c' % 'x' }}",
    "{{ '%*d' % (5, 3) }}",
    "{{ '%a' % 'é' }}",
    "{{ '%ld' % 5 }}",
    "{{ ('<%s>'|safe) % '&' }}",
    "{{ ('<{}>'|safe).format('&') }}",
    "{{ ('<%s'|safe)|format('>') }}",
    "{{ d.get(key='a') }}",
    "{{ s.replace('o', '0', count=1) }}",
    '{{ s.upper(1) }}',
    '{{ s|upper(1) }}',
    '{{ dict(a=1, a=2) }}',
    "{{ s.startswith(prefix='H') }}",
    '{{ xs|first(1) }}',
    "{{ s.strip(chars='H') }}",
    '{{ s.center(width=20) }}',
    "{{ 'a'.ljust(3, fillchar='x') }}",
    '{% raw %}',
    '{% for loop in xs %}{{ loop }}{% endfor %}',
    '{% for true in xs %}{% endfor %}',
    '{% set true = 1 %}',
    '{% macro m() %}a{% endmacro m %}{{ m() }}',
    '{% macro m() %}a{% endmacro %}{{ m.name }}{{ m.arguments }}',
    '{% macro m(a, b=1) %}{{ caller }}{% endmacro %}{{ m.arguments }}{{ m.catch_kwargs }}{{ m.catch_varargs }}{{ m.caller }}',
    '{% macro m(a, a) %}{% endmacro %}{{ m(1, 2) }}',
    '{% macro m(v=n) %}{{ v }}{% endmacro %}{{ m() }}{% set n = 2 %}{{ m() }}',
}


def cases():
    for name, text in EXPRESSIONS.items():
        for line in joined_lines(text):
            for expression in separated(line):
                yield name, "{{ " + expression + " }}", {}
    for name, templates in TEMPLATES.items():
        for template in templates:
            yield name, template, {}


def joined_lines(text):
    lines = []
    for line in text.strip("\n").split("\n"):
        if lines and lines[-1].endswith("\\"):
            lines[-1] += "\n" + line
        else:
            lines.append(line)
    return [line.strip() for line in lines if line.strip()]


def separated(line):
    """The expressions of a line, between bars with a space on either side."""
    return [part.strip() for part in line.split(" | ")]


def expected(template, variables):
    try:
        return {"text": _compile_jinja_template(template).render(**copy.deepcopy(variables))}
    except jinja2.exceptions.TemplateError as error:
        raised = type(error) is jinja2.exceptions.TemplateError
        return {"error": str(error) if raised else True}
    except Exception:
        return {"error": True}


def differs(wanted, found):
    if "text" in wanted:
        return found.get("text") != wanted["text"]
    if wanted["error"] is True:
        return "error" not in found
    return found.get("error") != "the chat template says: " + wanted["error"]


def compare(program, all_cases):
    lines = [json.dumps({"jinja": case["jinja"], "variables": VARIABLES | case.get("variables", {})})
             for case in all_cases]
    answer = subprocess.run([program], input="\n".join(lines) + "\n", capture_output=True, text=True)
    found = [json.loads(line) for line in answer.stdout.split("\n") if line]
    apart = otherwise = 0
    for case, reply in zip(all_cases, found):
        same = not differs(case, reply)
        if case["jinja"] in OTHERWISE:
            otherwise += 1
            if same:
                print(f"{case['jinja']!r} is in OTHERWISE, but is the same")
        elif not same:
            apart += 1
            print(f"{case['jinja']!r}\n    transformers {case.get('text', case.get('error'))!r}\n"
                  f"    dstrain      {reply.get('text', reply.get('error'))!r}"
                  f"{' (error)' if 'error' in reply else ''}")
    print(f"{len(all_cases)} templates, {len(found)} replies, {apart} differ, {otherwise} are known to")
    return apart == 0 and len(found) == len(all_cases)


def main():
    all_cases = []
    for _, template, own in cases():
        case = {"jinja": template}
        if own:
            case["variables"] = own
        all_cases.append(case | expected(template, VARIABLES | own))
    if len(sys.argv) > 1:
        sys.exit(0 if compare(sys.argv[1], all_cases) else 1)
    lines = ",\n".join(json.dumps(case) for case in all_cases if case["jinja"] not in OTHERWISE)
    head = f'{{"variables": {json.dumps(VARIABLES)},\n"cases": ['
    (HERE / "jinja.json").write_text(f"{head}\n{lines}\n]}}\n")


if __name__ == "__main__":
    main()
