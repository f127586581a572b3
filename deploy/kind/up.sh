#!/usr/bin/env bash
# Creates a federation of kind clusters: a host and three members, each with the node image of your choice.
#
#   create clusters --> run the test suite --> build the image, install it on the host --> fedrs join each member
#
# The test suite runs before the installation, with its own controller: of two controllers, one would only be a standby.
# Running the script again keeps existing clusters and runs the suite. settings.sh lists the settings; down.sh deletes everything.
set -euo pipefail
# shellcheck source=settings.sh
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"

need kind kubectl docker cargo
if ((${#member_images[@]} > 0 && ${#member_images[@]} != ${#members[@]})); then
  fail "FEDRS_MEMBER_IMAGES has ${#member_images[@]} images for ${#members[@]} members"
fi
if [[ $suite == yes ]] && ((${#members[@]} < 3)); then
  fail "the suite needs three members, but FEDRS_MEMBERS has ${#members[@]}; set FEDRS_SUITE=no to skip it"
fi

# create NAME NODE_IMAGE FILE: creates a cluster and writes the kubeconfig that reaches it from this machine.
create() {
  local name=$1 node_image=$2 file=$3
  if kind get clusters 2>/dev/null | grep --quiet --line-regexp --fixed-strings -- "$name"; then
    echo "$name exists"
  else
    # kind writes to a separate file, not to your kubeconfig.
    kind create cluster --name "$name" ${node_image:+--image "$node_image"} --kubeconfig "$dir/.new" --wait 180s
    rm -f "$dir/.new"
  fi
  (umask 077 && kind get kubeconfig --name "$name" >"$file")
}

step "clusters"
mkdir -p "$dir/members"
create "$host" "$host_image" "$dir/host.yaml"
for number in "${!members[@]}"; do
  create "${members[$number]}" "${member_images[$number]:-}" "$dir/members/${members[$number]}.yaml"
done

cd "$repository"
cargo build --package fedrs
fedrs=${CARGO_TARGET_DIR:-target}/debug/fedrs
export KUBECONFIG="$dir/host.yaml"

if [[ $suite == yes ]]; then
  step "suite"
  if kubectl --namespace fedrs-system get deployment fedrs-controller >/dev/null 2>&1; then
    fail "fedrs is already installed on $host and would interfere with the suite; run down.sh first, or set FEDRS_SUITE=no"
  fi
  FEDRS_PROGRAM=$(realpath "$fedrs") FEDRS_CLUSTERS="kubeconfigs:$dir" cargo test --package fedrs-tests --test suite
fi

step "installation"
docker build --file deploy/Containerfile --tag "$image" .
kind load docker-image "$image" --name "$host"
kubectl apply --server-side --force-conflicts --kustomize deploy/kustomize/overlays/one
kubectl --namespace fedrs-system set image deployment/fedrs-controller "controller=$image"
kubectl --namespace fedrs-system rollout status deployment/fedrs-controller --timeout 180s

step "members"
for member in "${members[@]}"; do
  # This machine reaches a member by a local port, the pods of the host by the name of its container.
  "$fedrs" join "$member" --host-kubeconfig "$dir/host.yaml" --member-kubeconfig "$dir/members/$member.yaml" \
    --member-server "https://$member-control-plane:6443"
done

step "done"
kubectl get memberclusters
echo "export KUBECONFIG=$dir/host.yaml"
