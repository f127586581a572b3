#!/usr/bin/env bash
# Deletes the clusters of up.sh and their kubeconfigs. Use the same settings (settings.sh).
set -euo pipefail
# shellcheck source=settings.sh
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"

need kind
mkdir -p "$dir"
for name in "$host" "${members[@]}"; do
  # up.sh never merged its kubeconfig into yours.
  kind delete cluster --name "$name" --kubeconfig "$dir/.old"
  rm -f "$dir/members/$name.yaml"
done
rm -f "$dir/host.yaml" "$dir/.old" "$dir/.old.lock"
# Keeps the directory if it contains other files.
rmdir "$dir/members" "$dir" 2>/dev/null || true
