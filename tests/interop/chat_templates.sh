#!/usr/bin/env bash
# Compares renderings of published chat templates with those of transformers, and tokens and masks.
#
#   tests/interop/chat_templates.sh [--chats COUNT] [VENV]
#
# VENV: a Python environment with transformers and jinja2. Without one it is made under build/, from
# PyPI. The templates are those in the wheels of trl, axolotl and unsloth, which are downloaded to
# build/chat-templates and not installed. Each renders COUNT made-up conversations (default 25) here
# and there: texts, errors that the template raises, and the spans of {% generation %} must be the
# same. trl's templates for training, with the tokenizers of tests/golden/tokenizers, must give the
# same tokens and masks. Needs a release build; DSTRAIN_BUILD names another build folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

build=${DSTRAIN_BUILD:-build/release} count=25
if [ "${1:-}" = --chats ]; then
  count=$2
  shift 2
fi
venv=${1:-build/interop-venv}
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet transformers==5.24.0 jinja2==3.1.6
fi
wheels=build/chat-templates
for package in trl==1.16.0 axolotl==0.19.0 unsloth==2026.10.9; do
  compgen -G "$wheels/${package%%=*}-*.whl" >/dev/null ||
    "$venv/bin/pip" download --quiet --no-deps --dest "$wheels" "$package"
done
cmake --build "$build" --target render_chats >/dev/null
"$venv/bin/python" tests/interop/check_chat_templates.py \
  "$build/tests/interop/render_chats" "$count" "$wheels"/*.whl
