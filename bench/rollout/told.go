package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/agent"
)

// told is the part of status --json that matters here.
type told struct {
	InForce []inForce           `json:"in_force"`
	Spread  []agent.SpreadTrial `json:"spread_trials"`
}

// inForce is a remedy in force.
type inForce struct {
	Target     string            `json:"target"`
	Remedy     string            `json:"remedy"`
	Parameters map[string]string `json:"parameters"`
	Trial      *struct {
		State string `json:"state"`
	} `json:"trial"`
}

// look asks what is in force.
func (a *agents) look() (t told, err error) {
	out, err := a.tool("status", "--json").Output()
	if err != nil {
		return t, fmt.Errorf("status --json: %w", err)
	}
	if err := json.Unmarshal(out, &t); err != nil {
		return t, fmt.Errorf("status --json: %w", err)
	}
	return t, nil
}

// take keeps what was told of each service; last: the agent has ended.
func (a *agents) take(t told, last bool) {
	for i, s := range a.all {
		of := &a.night.Services[i]
		at := slices.IndexFunc(t.Spread, func(one agent.SpreadTrial) bool { return one.Cgroup == s.path })
		if at >= 0 {
			of.Trial = &t.Spread[at]
			if t.Spread[at].Remedied.Requests+t.Spread[at].LeftAlone.Requests > 0 { // none are told any more once a remedy is kept
				of.Remedied, of.LeftAlone = t.Spread[at].Remedied, t.Spread[at].LeftAlone
			}
		}
		if of.Over = at < 0; at >= 0 && of.KeptAt == nil && t.Spread[at].Kept != nil {
			of.KeptAt = new(time.Since(a.began).Seconds())
		}
		if !last {
			continue
		}
		for _, f := range t.InForce {
			if f.Target == s.path && f.Trial == nil {
				of.InForce = shown(f.Remedy, f.Parameters)
			}
		}
	}
}

// shown is a remedy with its parameters.
func shown(remedy string, parameters map[string]string) string {
	words := []string{remedy}
	for _, key := range []string{"burst", "period", "cpus"} {
		if p := parameters[key]; p != "" {
			words = append(words, key+" "+p)
		}
	}
	return strings.Join(words, " ")
}

// onTrial is what is in force on trial, abandoned what is in force though nobody judges it and no trial kept it.
func (t told) onTrial() []string {
	return t.where(func(f inForce) bool { return f.Trial != nil })
}

func (t told) abandoned() []string {
	return t.where(func(f inForce) bool {
		if f.Trial != nil {
			return f.Trial.State != "running"
		}
		return !slices.ContainsFunc(t.Spread, func(s agent.SpreadTrial) bool { return s.Cgroup == f.Target && s.Kept != nil })
	})
}

func (t told) where(is func(inForce) bool) []string {
	all := []string{}
	for _, f := range t.InForce {
		if is(f) {
			all = append(all, f.Remedy+" of "+f.Target[strings.LastIndex(f.Target, "/")+1:])
		}
	}
	return all
}

// logged finds what differs between lines of the agent's log that say the same.
var logged = regexp.MustCompile(`time=\S+ |stopped_per_second_\w+=\S+ |/unthrottle-service-[^/ ]*/|pid=\d+|\d{8}-\d{6}-[0-9a-f]+`)

// numbered finds processes by number in it.
var numbered = regexp.MustCompile(`process \d+`)

// warnings are the lines of a log above info, each once.
func warnings(name string) (all []string, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all = []string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := lines.Text()
		if !strings.Contains(line, "level=WARN") && !strings.Contains(line, "level=ERROR") {
			continue
		}
		if line = numbered.ReplaceAllString(logged.ReplaceAllString(line, ""), "a process"); !slices.Contains(all, line) {
			all = append(all, line)
		}
	}
	return all, lines.Err()
}
