// Command kstatus reads Kubernetes objects from standard input, one JSON object per line, and prints the status that the
// kstatus library computes for each, one JSON object per line: {"status": "Current", "message": "..."}.
//
// The library is Flux's build of kstatus (github.com/fluxcd/cli-utils), which continues sigs.k8s.io/cli-utils.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

type result struct {
	Status  status.Status `json:"status"`
	Message string        `json:"message"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kstatus:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	decoder, encoder := json.NewDecoder(in), json.NewEncoder(out)
	for number := 1; ; number++ {
		// Kubernetes' own decoder keeps integers as integers; the library expects them.
		var line json.RawMessage
		if err := decoder.Decode(&line); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("failed to read object %d: %w", number, err)
		}
		object, _, err := unstructured.UnstructuredJSONScheme.Decode(line, nil, nil)
		if err != nil {
			return fmt.Errorf("failed to decode object %d: %w", number, err)
		}
		computed, err := compute(object)
		if err != nil {
			return fmt.Errorf("failed to compute the status of object %d: %w", number, err)
		}
		if err := encoder.Encode(computed); err != nil {
			return err
		}
	}
}

func compute(object runtime.Object) (result, error) {
	resource, ok := object.(*unstructured.Unstructured)
	if !ok {
		return result{}, fmt.Errorf("%T is not a single object", object)
	}
	computed, err := status.Compute(resource)
	if err != nil {
		return result{}, err
	}
	return result{Status: computed.Status, Message: computed.Message}, nil
}
