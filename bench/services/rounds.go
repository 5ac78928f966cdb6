package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/unthrottle/unthrottle/test/study"
)

// Round is a record of one round of one service.
type Round interface {
	Is(service string, round int) bool
}

// MissingRounds measures the rounds of services that no record has. A service that fails has no further ones, and the others go on.
func MissingRounds[P Round](ctx context.Context, have *study.Lines[P], chosen []Case, rounds int,
	measure func(c Case, round int) (P, error)) error {
	var failed []error
	for _, c := range chosen {
		for round := 1; round <= rounds; round++ {
			if slices.ContainsFunc(have.All, func(p P) bool { return p.Is(c.Name, round) }) {
				continue
			}
			p, err := measure(c, round)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				fmt.Fprintf(os.Stderr, "%s: %s: %v\n", filepath.Base(os.Args[0]), c.Name, err)
				failed = append(failed, fmt.Errorf("%s: %w", c.Name, err))
				break
			}
			if err := have.Add(p); err != nil {
				return err
			}
		}
	}
	return errors.Join(failed...)
}
