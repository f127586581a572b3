#!/usr/bin/env bash
# A federation of kind clusters: a host and three members, each on the node image of your choice.
#
#   make clusters --> run the suite on them --> build the image, install it on the host --> fedrs join each member
#
# The suite runs before the installation, with a controller of its own: of two controllers one would only stand by.
# What is there is kept: again is a no-op but for the suite. Settings: settings.sh. Away with it all: down.sh.
set -euo pipefail
# shellcheck source=settings.sh
source "$(dirname "${BASH_SOURCE[0]}")/settings.sh"

need kind kubectl docker cargo
if ((${#member_images[@]} > 0 && ${#member_images[@]} != ${#members[@]})); then
  fail "FEDRS_MEMBER_IMAGES has ${#member_images[@]} images for ${#members[@]} members"
fi
if [[ $suite == yes ]] && ((${#members[@]} < 3)); then
  fail "the suite needs three members: FEDRS_MEMBERS has ${#members[@]} (FEDRS_SUITE=no to go without)"
fi

# make NAME NODE_IMAGE FILE: a cluster, and its kubeconfig as it is reached from here.
make() {
  local name=$1 node_image=$2 file=$3
  if kind get clusters 2>/dev/null | grep --quiet --line-regexp --fixed-strings -- "$name"; then
    echo "$name is there"
  else
    # Its kubeconfig is not merged into yours.
    kind create cluster --name "$name" ${node_image:+--image "$node_image"} --kubeconfig "$dir/.new" --wait 180s
    rm -f "$dir/.new"
  fi
  (umask 077 && kind get kubeconfig --name "$name" >"$file")
}

step "clusters"
mkdir -p "$dir/members"
make "$host" "$host_image" "$dir/host.yaml"
for number in "${!members[@]}"; do
  make "${members[$number]}" "${member_images[$number]:-}" "$dir/members/${members[$number]}.yaml"
done

cd "$repository"
cargo build --package fedrs
fedrs=${CARGO_TARGET_DIR:-target}/debug/fedrs
export KUBECONFIG="$dir/host.yaml"

if [[ $suite == yes ]]; then
  step "suite"
  if kubectl --namespace fedrs-system get deployment fedrs-controller >/dev/null 2>&1; then
    fail "fedrs is installed on $host already, and would work beside the suite: down.sh first, or FEDRS_SUITE=no"
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
  # From here a member is at a port of this machine, from the host's pods at its container.
  "$fedrs" join "$member" --host-kubeconfig "$dir/host.yaml" --member-kubeconfig "$dir/members/$member.yaml" \
    --member-server "https://$member-control-plane:6443"
done

step "done"
kubectl get memberclusters
echo "export KUBECONFIG=$dir/host.yaml"
