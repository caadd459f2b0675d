#!/usr/bin/env bash
# Manual pages and completions, as they are installed.
#     man.sh <prefix> <verbs.def>
set -euo pipefail
prefix=$1 verbs=$2
cd "$prefix/share/man"

fail()
{
    echo "FAILED: $*"
    exit 1
}

# Every verb has a page; a page that is a link leads to one.
while read -r verb; do
    [[ -s man3/$verb.3 ]] || fail "$verb has no manual page"
    read -r link <"man3/$verb.3"
    [[ $link == '.so man3/'* && -s ${link#.so } ]] || fail "the page of $verb is not a link to one: $link"
    grep -qE "(^|[ *(])$verb\(" "${link#.so }" || fail "${link#.so } does not show $verb"
done < <(sed -nE 's/^HF_VERB\((hf_[a-z0-9_]+).*/\1/p' "$verbs" | sed 's/_with$//')
echo "$(find man3 -type f | wc -l) pages in section 3, $(grep -L '^\.so' man3/* | wc -l) of them with text"

text=$(groff -mandoc -Tascii -P-cbou man1/holdfast.1)
for word in "holdfast help" "--deep" "read every page and every event" "--id of update"; do
    [[ $text == *"$word"* ]] || fail "'$word' is not in holdfast(1): $text"
done

# No page makes groff complain, and none is empty.
for page in $(grep -L '^\.so' man1/*.1 man3/*.3 man5/*.5); do
    groff -mandoc -Tutf8 -z -ww "$page" >"$prefix/man.log" 2>&1 || true
    [[ ! -s $prefix/man.log ]] || { cat "$prefix/man.log" && fail "$page"; }
    text=$(groff -mandoc -Tascii -P-cbou "$page")
    [[ $text == *NAME* && ${#text} -gt 300 ]] || fail "$page has no text"
done

# Completion: of commands, of the second word, of options.
complete_words()
{
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    COMPREPLY=()
    _holdfast
    echo " ${COMPREPLY[*]} "
}
set +u # as in a shell that people use
# shellcheck source=/dev/null
source "$prefix/share/bash-completion/completions/holdfast"
[[ $(complete_words holdfast sig) == *" signal "* ]] || fail "bash does not complete 'holdfast sig'"
[[ $(complete_words holdfast db c) == *" check "* ]] || fail "bash does not complete 'holdfast db c'"
[[ $(complete_words holdfast help sig) == *" signal "* ]] || fail "bash does not complete 'holdfast help sig'"
[[ $(complete_words holdfast db check --) == *" --deep "* ]] || fail "bash does not complete 'holdfast db check --'"
[[ -s $prefix/share/zsh/site-functions/_holdfast ]] || fail "no completion for zsh"
