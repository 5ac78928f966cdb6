package main

import (
	"io"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/objective"
)

// TestNumbersThatAreNoDecimals gives each kind of number in a notation that Go's parser knows and people do not mean.
func TestNumbersThatAreNoDecimals(t *testing.T) {
	for _, number := range []string{"0x1p4", "inf", "nan", "0x_1p0"} {
		if _, err := parseShare(number); err == nil {
			t.Errorf("a share of %s", number)
		}
		if _, _, err := parseLoads("1.." + number); err == nil {
			t.Errorf("loads up to %s", number)
		}
		if _, err := objective.Parse("p" + number + "=20ms"); err == nil {
			t.Errorf("the percentile %s", number)
		}
		for _, call := range []string{"apply x --remedy raise --to", "apply x --remedy raise --factor"} {
			root := newRoot()
			root.SetOut(io.Discard)
			root.SetArgs(append(strings.Fields(call), number))
			if err := root.Execute(); err == nil || !strings.Contains(err.Error(), "is no number: write it as 2 or 0.5") {
				t.Errorf("%s %s: %v", call, number, err)
			}
		}
	}
}
