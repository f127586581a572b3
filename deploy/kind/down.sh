#!/usr/bin/env bash
# Removes the clusters of up.sh, and their kubeconfigs. Give the same settings (settings.sh).
set -euo pipefail
# shellcheck source=settings.sh
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"

need kind
mkdir -p "$dir"
for name in "$host" "${members[@]}"; do
  # Yours was never merged with its kubeconfig.
  kind delete cluster --name "$name" --kubeconfig "$dir/.old"
  rm -f "$dir/members/$name.yaml"
done
rm -f "$dir/host.yaml" "$dir/.old" "$dir/.old.lock"
# Whatever else is in there is yours.
rmdir "$dir/members" "$dir" 2>/dev/null || true
