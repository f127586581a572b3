// Command xds-client makes calls by gRPC's own xDS resolver and balancer, and prints which servers they reached.
//
//	xds-client TARGET
//
// TARGET is for example xds:///web.shop. The management server is in GRPC_XDS_BOOTSTRAP_CONFIG. Each line of standard input is a
// number of calls to grpc.health.v1.Health/Check; after them it prints one JSON object: {"servers": {"127.0.0.1:1": 5}, "errors": []}.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	_ "google.golang.org/grpc/xds"
)

// How long one call may take, also while the target is being resolved.
const timeout = 20 * time.Second

type result struct {
	// How many calls each server answered, by its address.
	Servers map[string]int `json:"servers"`
	// The errors of the others.
	Errors []string `json:"errors"`
}

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "xds-client:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: xds-client TARGET")
	}
	connection, err := grpc.NewClient(args[0], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("failed to make a client: %w", err)
	}
	defer connection.Close()
	client, encoder := health.NewHealthClient(connection), json.NewEncoder(out)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		calls, err := strconv.Atoi(lines.Text())
		if err != nil {
			return fmt.Errorf("failed to read a number of calls: %w", err)
		}
		if err := encoder.Encode(call(client, calls)); err != nil {
			return err
		}
	}
	return nil
}

func call(client health.HealthClient, calls int) result {
	found := result{Servers: map[string]int{}, Errors: []string{}}
	for range calls {
		var server peer.Peer
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		_, err := client.Check(ctx, &health.HealthCheckRequest{}, grpc.Peer(&server), grpc.WaitForReady(true))
		cancel()
		if err != nil {
			found.Errors = append(found.Errors, err.Error())
		} else {
			found.Servers[server.Addr.String()]++
		}
	}
	return found
}
