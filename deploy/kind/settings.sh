# Settings of up.sh and down.sh, which source this file. Set them in the environment.
#
#   FEDRS_KIND_DIR      directory for the kubeconfigs: host.yaml, members/NAME.yaml
#   FEDRS_HOST          name of the host cluster
#   FEDRS_HOST_IMAGE    node image of the host, for example kindest/node:v1.34.0; defaults to that of kind
#   FEDRS_MEMBERS       names of the member clusters
#   FEDRS_MEMBER_IMAGES node images of the members, in the same order; default to that of kind
#   FEDRS_IMAGE         image of the controller to build and load
#   FEDRS_SUITE         set to no to skip the test suite
# shellcheck shell=bash disable=SC2034 # used by the scripts that source it

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
readonly here repository
readonly dir=${FEDRS_KIND_DIR:-"${XDG_STATE_HOME:-$HOME/.local/state}/fedrs-kind"}
readonly host=${FEDRS_HOST:-fedrs-host}
readonly host_image=${FEDRS_HOST_IMAGE:-}
read -r -a members <<<"${FEDRS_MEMBERS:-fedrs-a fedrs-b fedrs-c}"
read -r -a member_images <<<"${FEDRS_MEMBER_IMAGES:-}"
# The tag that deploy/kustomize uses.
readonly image=${FEDRS_IMAGE:-fedrs:0.1.0}
readonly suite=${FEDRS_SUITE:-yes}
readonly members member_images

fail() {
  printf '%s: %s\n' "$0" "$*" >&2
  exit 1
}

step() { printf '\n== %s\n' "$*"; }

# Fails unless every given program is installed.
need() {
  local program
  for program in "$@"; do
    command -v "$program" >/dev/null || fail "$program is not installed"
  done
}
