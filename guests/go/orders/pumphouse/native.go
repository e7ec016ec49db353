//go:build !wasip1

package pumphouse

import (
	"fmt"
	"os"
)

// Log writes a line to standard error: there is no operator's log natively.
func Log(level Level, text string) { fmt.Fprintf(os.Stderr, "%d: %s\n", level, text) }

// Config returns an environment variable: there are no settings natively.
func Config(name string) (string, bool) { return os.LookupEnv(name) }

// Secret returns an environment variable: there are no secrets natively.
func Secret(name string) (string, bool) { return os.LookupEnv(name) }
