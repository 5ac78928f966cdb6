package main

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/test/study"
)

// run is one run of the benchmark of the whole agent.
type run struct {
	At     time.Time   `json:"at"`
	Label  string      `json:"label"`
	Kernel string      `json:"kernel"`
	CPUs   int         `json:"cpus"`
	Agents []agentCost `json:"agents"`
}

func newRun(label, program string) (run, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return run{}, err
	}
	if label == "" && program != "" {
		version, err := exec.Command(program, "--version").Output()
		if err != nil {
			return run{}, fmt.Errorf("the version of %s: %w", program, err)
		}
		label = strings.TrimSpace(strings.TrimPrefix(string(version), "unthrottle version "))
	}
	return run{At: time.Now().UTC().Truncate(time.Second), Label: label, Kernel: unix.ByteSliceToString(u.Release[:]),
		CPUs: runtime.NumCPU()}, nil
}

const totalsHead = `| containers, stopped | the whole | at most | | its process | the probe's programs | their runs per s | resident MB | at most | | while recording | start, CPU-s | others, CPUs |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
`

// Totals is the table of the whole agent.
func (r run) Totals() string {
	table := totalsHead
	for _, c := range r.Agents {
		memory, met := "-", ""
		if bound := c.residentBound(); bound > 0 {
			memory, met = fmt.Sprint(bound/1e6), verdict(float64(c.Resident), float64(bound))
		}
		var recording, programs *float64
		if c.ResidentRecording != nil {
			recording = new(float64(*c.ResidentRecording) / 1e6)
		}
		if c.Programs != nil {
			programs = new(c.per100(*c.Programs))
		}
		whole := c.per100(c.perMinute())
		decimal := func(v float64) string { return study.Decimals(&v, 1) }
		two := func(v float64) string { return study.Decimals(&v, 2) }
		table += study.Row(c.name(), two(whole), decimal(c.bound()), verdict(whole, c.bound()), two(c.per100(c.Process)),
			study.Decimals(programs, 2),
			study.Decimals(c.Runs, 0), decimal(float64(c.Resident)/1e6), memory, met, study.Decimals(recording, 1),
			two(c.Start), study.Decimals(c.OthersCPUs, 2)) + "\n"
	}
	return table
}

// measured are the scenarios of which the whole was measured: what was not costs something too.
func (r run) measured() (all []agentCost) {
	for _, c := range r.Agents {
		if c.Programs != nil {
			all = append(all, c)
		}
	}
	return all
}

// Figures is how many of the whole were measured.
func (r run) Figures() int { return len(r.measured()) }

// Missed is how many of these are above their bound.
func (r run) Missed() (missed int) {
	for _, c := range r.measured() {
		if c.per100(c.perMinute()) > c.bound() {
			missed++
		}
	}
	return missed
}

func verdict(is, bound float64) string {
	if is > bound {
		return "MISSED"
	}
	return "met"
}

// name is the scenario's in tables.
func (c agentCost) name() string { return fmt.Sprintf("%d, %d", c.Cgroups, c.Stopped) }

// keep says where a run is kept and shown.
type keep struct{ runs, label, page, readme string }

func (k keep) read() (all []run, err error) {
	_, err = study.Read(k.runs, &all)
	return all, err
}

// add adds a run to the file of runs, and shows it.
func (k keep) add(r run) error {
	all, err := k.read()
	if err != nil {
		return err
	}
	all = append(all, r)
	if err := study.Write(k.runs, all); err != nil {
		return err
	}
	return k.show(all)
}

//go:embed page.md
var pageText string

// shown is what the page is filled with: the last run, and what earlier ones came to.
type shown struct {
	run
	All []run
}

// pageOf is docs/results/cost.md.
func pageOf(all []run) string { return study.Fill(pageText, nil, shown{all[len(all)-1], all}) }

// Scenarios are the heads of the table of all runs.
func (s shown) Scenarios() (names []string) {
	for _, c := range s.Agents {
		names = append(names, c.name())
	}
	return names
}

// Cells are what a run came to in each scenario: the whole, what of it is the process's, and its memory.
func (s shown) Cells(r run) (cells []string) {
	for _, name := range s.Scenarios() {
		cell := "-"
		if i := slices.IndexFunc(r.Agents, func(c agentCost) bool { return c.name() == name }); i >= 0 {
			c := r.Agents[i]
			cell = fmt.Sprintf("%.2f, %.2f, %.0f MB", c.per100(c.perMinute()), c.per100(c.Process), float64(c.Resident)/1e6)
		}
		cells = append(cells, cell)
	}
	return cells
}

// show writes the page and README's figure of the last run.
func (k keep) show(all []run) error {
	if len(all) == 0 {
		return fmt.Errorf("%s has no run to show", k.runs)
	}
	r := all[len(all)-1]
	if k.page != "" {
		if err := study.WritePage(k.page, pageOf(all)); err != nil {
			return err
		}
	}
	if k.readme == "" {
		return nil
	}
	text, err := os.ReadFile(k.readme)
	if err != nil {
		return err
	}
	line, err := inReadme(string(text), r)
	if err != nil {
		return fmt.Errorf("%s: %w", k.readme, err)
	}
	return study.WritePage(k.readme, line)
}

var costLine = regexp.MustCompile(`(?s)- \*\*What it costs\.\*\* .*?\n\n`)

// readmeWidth is how wide README's lines are.
const readmeWidth = 138

// inReadme replaces the item about the cost: from what to what the whole agent uses, by how many containers there are.
func inReadme(readme string, r run) (string, error) {
	if len(costLine.FindAllString(readme, -1)) != 1 {
		return "", errors.New("it has no item, or several, that begin with \"- **What it costs.** \"")
	}
	costs, memory := map[int][]float64{}, []float64{} // of the whole agent
	for _, c := range r.measured() {
		costs[c.Cgroups] = append(costs[c.Cgroups], c.per100(c.perMinute()))
		memory = append(memory, float64(c.Resident)/1e6)
	}
	if len(costs) == 0 {
		return "", errors.New("the probe's programs were measured in no scenario")
	}
	var each []string
	for _, size := range slices.Sorted(maps.Keys(costs)) {
		on := text.Either(len(each) == 0, "CPU-seconds a minute on a host with %d containers", "with %d")
		each = append(each, fmt.Sprintf("%.2f to %.2f "+on, slices.Min(costs[size]), slices.Max(costs[size]), size))
	}
	lines := text.Fill(fmt.Sprintf("- **What it costs.** Per 100 containers the agent uses %s; and %.1f to %.1f MB of memory. %d of %d figures miss "+
		"[the aim](docs/results/cost.md#measured).", strings.Join(each, ", "), slices.Min(memory), slices.Max(memory), r.Missed(), r.Figures()), readmeWidth)
	return costLine.ReplaceAllLiteralString(readme, strings.Join(lines, "\n  ")+"\n\n"), nil
}
