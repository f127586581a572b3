// Command coredns is CoreDNS with the plugins that the benchmark of discovery needs, and its own command line.
package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/file"
)

func main() {
	coremain.Run()
}
