package services

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/test/study"
)

type roundOf struct {
	Service string
	Round   int
}

func (r roundOf) Is(service string, round int) bool { return r == roundOf{service, round} }

// What is there is not measured again; a service that fails has no further rounds, and the others have theirs.
func TestMissingRounds(t *testing.T) {
	have, err := study.ReadLines[roundOf](filepath.Join(t.TempDir(), "rounds.jsonl"))
	if err == nil {
		err = have.Add(roundOf{"a", 1})
	}
	if err != nil {
		t.Fatal(err)
	}
	var asked []roundOf
	measure := func(c Case, round int) (roundOf, error) {
		of := roundOf{c.Name, round}
		if asked = append(asked, of); c.Name == "b" {
			return of, errors.New("does not start")
		}
		return of, nil
	}
	err = MissingRounds(t.Context(), have, []Case{{Name: "a"}, {Name: "b"}, {Name: "c"}}, 2, measure)
	if err == nil || !strings.Contains(err.Error(), "b: does not start") {
		t.Error(err)
	}
	if want := []roundOf{{"a", 2}, {"b", 1}, {"c", 1}, {"c", 2}}; !slices.Equal(asked, want) || len(have.All) != 4 {
		t.Errorf("%v of which %v is kept", asked, have.All)
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	err = MissingRounds(ctx, have, []Case{{Name: "d"}, {Name: "e"}}, 1, measure)
	if !errors.Is(err, context.Canceled) || len(have.All) != 4 {
		t.Errorf("%v, %d records", err, len(have.All))
	}
}
