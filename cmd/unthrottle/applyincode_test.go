package main

import (
	"strings"
	"testing"
)

// The row of a forecast that is a change of the program's code is refused, with what to write instead.
func TestApplyRefusesAChangeOfTheCode(t *testing.T) {
	_, err := called("apply", "x", "--remedy", "budget", "--dry-run")
	for _, want := range []string{"which no plan can do", "budget.Process().Do(", "budget.run(TaskClass.APP",
		"docs/howto/in-your-go-code.md"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}
