#!/bin/sh
# docs.sh: writes the pages that heapmark prints of itself into target/docs/.
set -eu
cd "$(dirname "$0")/.."
heapmark=${HEAPMARK:-target/release/heapmark}
mkdir -p target/docs
for page in allocators workloads metrics checks; do
    "$heapmark" list $page --markdown | sed 's|](\([A-Z]\)|](../../docs/\1|g' >target/docs/$page.md
done
{
    echo '# Commands'
    for command in $("$heapmark" --help | sed -n 's/^  \([a-z]\+\)  .*/\1/p'); do
        printf '\n## heapmark %s\n\n```\n' "$command"
        "$heapmark" "$command" --help
        echo '```'
    done
} >target/docs/commands.md
