package main

import (
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/cure/verdict"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// The exit code of a fix says what is true at its end.
func TestFixExitCodes(t *testing.T) {
	applied := func(change func(*fix.Result)) fix.Result {
		r := fix.Result{Result: apply.Result{ID: "7", Verdict: verdict.Better}, Kept: true}
		change(&r)
		return r
	}
	gone := errors.New("the counters are gone")
	for name, tc := range map[string]struct {
		result fix.Result
		err    error
		want   int
	}{
		"better, kept, and calm":             {applied(func(*fix.Result) {}), nil, exitFine},
		"the objective is met":               {applied(func(r *fix.Result) { r.ObjectiveMet = new(true) }), nil, exitFine},
		"nothing to do":                      {fix.Result{Result: apply.Result{Verdict: string(policy.AnswerLeave)}}, nil, exitFine},
		"better, kept, and stopped":          {applied(func(r *fix.Result) { r.StoppedAbove = true }), nil, exitFine},
		"better, kept, the objective missed": {applied(func(r *fix.Result) { r.ObjectiveMet = new(false) }), nil, exitAboveBound},
		"left as it is, and stopped":         {fix.Result{StoppedAbove: true}, nil, exitAboveBound},
		"every remedy was refused":           {fix.Result{StoppedAbove: true}, &fix.NoRemedy{}, exitFailure},
		"not measured, nothing written":      {fix.Result{}, &fix.NotMeasured{Err: gone}, exitNotMeasurable},
		"not measured afterwards, undone": {applied(func(r *fix.Result) { r.Kept = false }),
			&fix.NotMeasured{Err: gone}, exitNotMeasurable},
		"not measured, not undone either": {applied(func(*fix.Result) {}),
			errors.Join(&fix.NotMeasured{Err: gone}, &apply.NotRestored{}), exitFailure},
	} {
		cmd := newFix()
		cmd.SetOut(io.Discard)
		if got := exitCode(showFix(cmd, tc.result, new(looking), tc.err, output{}), false); got != tc.want {
			t.Errorf("%s: exit code %d, want %d", name, got, tc.want)
		}
	}
}

// A target that is no container of the list stands for those below it; any other is in the list already.
func TestTargetsInTheList(t *testing.T) {
	at := func(path string) container.Container { return container.Container{Group: cgroup.Group{Path: path}} }
	containers := []container.Container{at("/a/x"), at("/a/y"), at("/ab"), at("/b")}
	for target, want := range map[string][]string{"/b": {"/a/x", "/a/y", "/ab", "/b"}, "/a": {"/ab", "/b", "/a"},
		"/a/y": {"/a/x", "/a/y", "/ab", "/b"}} {
		var got []string
		for _, c := range withTarget(containers, at(target)) {
			got = append(got, c.Group.Path)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", target, got, want)
		}
	}
}
