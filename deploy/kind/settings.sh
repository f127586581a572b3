# What up.sh and down.sh have in common: to be sourced. Everything can be set in the environment.
#
#   FEDRS_KIND_DIR      where kubeconfigs are written: host.yaml, members/NAME.yaml
#   FEDRS_HOST          the host's name
#   FEDRS_HOST_IMAGE    its node image, such as kindest/node:v1.34.0; kind's own if empty
#   FEDRS_MEMBERS       the members' names
#   FEDRS_MEMBER_IMAGES their node images, one for each in this order, so that each can be of another version; kind's own if empty
#   FEDRS_IMAGE         the image of the controller that is built and loaded
#   FEDRS_SUITE         no: the suite is not run
# shellcheck shell=bash disable=SC2034 # used by those that source it

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
readonly here repository
readonly dir=${FEDRS_KIND_DIR:-"${XDG_STATE_HOME:-$HOME/.local/state}/fedrs-kind"}
readonly host=${FEDRS_HOST:-fedrs-host}
readonly host_image=${FEDRS_HOST_IMAGE:-}
read -r -a members <<<"${FEDRS_MEMBERS:-fedrs-a fedrs-b fedrs-c}"
read -r -a member_images <<<"${FEDRS_MEMBER_IMAGES:-}"
# The tag is the one that deploy/kustomize has.
readonly image=${FEDRS_IMAGE:-fedrs:0.1.0}
readonly suite=${FEDRS_SUITE:-yes}
readonly members member_images

fail() {
  printf '%s: %s\n' "$0" "$*" >&2
  exit 1
}

step() { printf '\n== %s\n' "$*"; }

# Each of the programs has to be there before anything is made.
need() {
  local program
  for program in "$@"; do
    command -v "$program" >/dev/null || fail "$program is needed"
  done
}
