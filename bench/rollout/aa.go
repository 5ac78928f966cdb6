package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/cure/switchback"
	"github.com/unthrottle/unthrottle/test/study"
)

// In a night of A/A tests each block leaves its service as it is, and a remedy that would be kept would be kept by chance.
// One night has few trials. But since nothing was in force in any block, any order of the remedies could have been drawn for
// the same blocks: so each trial is also judged in other orders, by the rule that the agent judges by.

// redraws is in how many other orders the blocks of a service are judged.
const redraws = 1000

// aaTest is the A/A test of a service.
type aaTest struct {
	State switchback.State `json:"state"`
	// WouldKeep is the remedy that the agent would have kept, or nothing; "": the test had not ended with the night.
	WouldKeep string `json:"would_keep"`
}

// redrawn is in how many of n other orders a trial of so many remedies would have kept one.
func redrawn(measured switchback.State, remedies, n int) (kept int, err error) {
	if len(measured.Blocks) == 0 {
		return 0, nil
	}
	took := measured.Used / time.Duration(len(measured.Blocks))
	p := measured.Plan
	p.Variants = remedies
	for p.Seed = range uint64(n) {
		s, err := switchback.Begin(p, measured.Began)
		if err != nil {
			return 0, err
		}
		for _, b := range measured.Blocks {
			b.Round, b.Variant = s.Next()
			s = s.Add(b, took)
			if d := s.Decide(); d.Answer == switchback.Going {
				continue
			} else if d.Answer == switchback.Keep {
				kept++
			}
			break
		}
	}
	return kept, nil
}

// takeAA keeps the states of the A/A tests that the agent has.
func (a *agents) takeAA() error {
	files, err := filepath.Glob(filepath.Join(a.dir, "state", "switchbacks", "*.json"))
	if err != nil {
		return err
	}
	for _, name := range files {
		in, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue // it ended just now
		}
		var test struct {
			Cgroup string           `json:"cgroup"`
			State  switchback.State `json:"state"`
		}
		if err == nil {
			err = json.Unmarshal(in, &test)
		}
		if err != nil {
			return fmt.Errorf("the state of an A/A test: %w", err)
		}
		for i, s := range a.all {
			if of := &a.night.Services[i]; s.path == test.Cgroup {
				of.AA = &aaTest{State: test.State}
			}
		}
	}
	return nil
}

// endedAA finds what an A/A test would have kept in a line of the agent's log.
var endedAA = regexp.MustCompile(`msg="an A/A test ended" container=(\S+) would_have_kept=("[^"]*"|\S+)`)

// takeEndsAA reads in the agent's log what each A/A test would have kept.
func (a *agents) takeEndsAA(log string) {
	for _, found := range endedAA.FindAllStringSubmatch(log, -1) {
		for i := range a.night.Services {
			s := &a.night.Services[i]
			if s.AA != nil && strings.HasSuffix(found[1], "/"+s.Name) {
				s.AA.WouldKeep = strings.Trim(found[2], `"`)
			}
		}
	}
}

// aaRow is the row of a service in a night of A/A tests.
func aaRow(s serviced) (string, error) {
	if s.AA == nil {
		return study.Row("`"+s.Name+"`", s.Limit, "-", "-", "no test began", "-", "-"), nil
	}
	remedies := s.AA.State.Plan.Variants
	as, err := redrawn(s.AA.State, remedies, redraws)
	if err != nil {
		return "", err
	}
	one, err := redrawn(s.AA.State, 1, redraws)
	if err != nil {
		return "", err
	}
	would := s.AA.WouldKeep
	if would == "" {
		would = "had not ended"
	}
	return study.Row("`"+s.Name+"`", s.Limit, remedies, len(s.AA.State.Blocks), would, as, one), nil
}
