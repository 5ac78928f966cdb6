package recording

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/topology"
)

// headerJSON is a header as stored in a recording: sets of CPUs are lists.
type headerJSON struct {
	Header
	Host        hostJSON `json:"host"`
	CPUsAllowed string   `json:"cpus_allowed"`
}

type hostJSON struct {
	Host
	CPUs    string            `json:"cpus"`
	Machine *topology.Machine `json:"machine,omitempty"`
}

func encodeHeader(h *Header) ([]byte, error) {
	j := headerJSON{Header: h.mapped(toJSON), CPUsAllowed: h.CPUsAllowed.String()}
	j.Host = hostJSON{Host: h.Host, CPUs: h.Host.CPUs.String(), Machine: h.Host.Machine}
	j.Header.Version = Version
	b, err := json.Marshal(j)
	if err == nil {
		err = tooMany(b) // a reader would refuse it
	}
	if err != nil {
		return nil, fmt.Errorf("recording: header: %w", err)
	}
	return b, nil
}

// maxObjects bounds the JSON objects of a header or footer: each takes far more memory than its "{}".
const maxObjects = 1 << 18

func tooMany(b []byte) error {
	if n := bytes.Count(b, []byte{'{'}); n > maxObjects {
		return fmt.Errorf("%d objects, more than any recording has", n)
	}
	return nil
}

func decodeHeader(b []byte) (Header, error) {
	if err := tooMany(b); err != nil {
		return Header{}, fmt.Errorf("header: %w", err)
	}
	var j headerJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return Header{}, fmt.Errorf("header: %w", err)
	}
	h := j.Header
	h.Host = j.Host.Host
	h.Host.Machine = j.Host.Machine
	var err error
	if h.Host.CPUs, err = cpus(j.Host.CPUs); err != nil {
		return Header{}, fmt.Errorf("header: cpus: %w", err)
	}
	if h.CPUsAllowed, err = cpus(j.CPUsAllowed); err != nil {
		return Header{}, fmt.Errorf("header: cpus_allowed: %w", err)
	}
	return h.mapped(fromJSON), nil
}

// cpus reads a list; topology's parser bounds the memory of "0-999999999".
func cpus(list string) (cpuset.CPUSet, error) {
	if list == "" {
		return cpuset.New(), nil
	}
	return topology.ParseList(list)
}

func encodeFooter(f *Footer) ([]byte, error) {
	b, err := json.Marshal(f.mapped(toJSON))
	if err == nil {
		err = tooMany(b) // a reader would refuse it
	}
	if err != nil {
		return nil, fmt.Errorf("recording: footer: %w", err)
	}
	return b, nil
}

func decodeFooter(b []byte) (Footer, error) {
	if err := tooMany(b); err != nil {
		return Footer{}, fmt.Errorf("footer: %w", err)
	}
	var f Footer
	if err := json.Unmarshal(b, &f); err != nil {
		return Footer{}, fmt.Errorf("footer: %w", err)
	}
	return f.mapped(fromJSON), nil
}

// notText marks a string whose bytes are not UTF-8, which JSON cannot hold.
const notText = "base64:"

// toJSON accepts any bytes, because a thread may choose any bytes as its name.
func toJSON(s string) string {
	if utf8.ValidString(s) && !strings.HasPrefix(s, notText) {
		return s
	}
	return notText + base64.StdEncoding.EncodeToString([]byte(s))
}

func fromJSON(s string) string {
	coded, ok := strings.CutPrefix(s, notText)
	if !ok {
		return s
	}
	b, err := base64.StdEncoding.DecodeString(coded)
	if err != nil {
		return s
	}
	return string(b)
}

// mapped returns a copy with f applied to every string that comes from outside.
func (h *Header) mapped(f func(string) string) Header {
	c := *h
	c.Target.Path, c.Target.Name = f(h.Target.Path), f(h.Target.Name)
	c.Levels, c.SubLevels = mapLevels(h.Levels, f), mapLevels(h.SubLevels, f)
	c.Threads = slices.Clone(h.Threads)
	for i := range c.Threads {
		c.Threads[i].Comm = f(c.Threads[i].Comm)
	}
	c.Processes = mapProcesses(h.Processes, f)
	c.NotMeasured = mapAll(h.NotMeasured, f)
	return c
}

func (t *Footer) mapped(f func(string) string) Footer {
	c := *t
	c.Neighbours = slices.Clone(t.Neighbours)
	for i := range c.Neighbours {
		c.Neighbours[i].Name, c.Neighbours[i].Path = f(c.Neighbours[i].Name), f(c.Neighbours[i].Path)
	}
	c.Levels = mapLevels(t.Levels, f)
	c.Processes = mapProcesses(t.Processes, f)
	return c
}

func mapLevels(levels []Level, f func(string) string) []Level {
	c := slices.Clone(levels)
	for i := range c {
		c[i].Path = f(c[i].Path)
	}
	return c
}

func mapProcesses(processes []Process, f func(string) string) []Process {
	c := slices.Clone(processes)
	for i := range c {
		p := &c[i]
		p.Comm, p.Exe, p.Go = f(p.Comm), f(p.Exe), f(p.Go)
		p.Cmdline, p.Libraries, p.Holds = mapAll(p.Cmdline, f), mapAll(p.Libraries, f), mapAll(p.Holds, f)
	}
	return c
}

func mapAll(all []string, f func(string) string) []string {
	c := slices.Clone(all)
	for i := range c {
		c[i] = f(c[i])
	}
	return c
}
