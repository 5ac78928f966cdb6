package services

import (
	"bytes"
	_ "embed"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
)

//go:embed cases.yaml
var casesText []byte

//go:embed others.yaml
var othersText []byte

//go:embed wide.yaml
var wideText []byte

// Case is one real service with a known truth.
type Case struct {
	Name string
	// Truth says what runs, who spends the quota and who waits.
	Truth string
	Limit float64 // CPUs
	// Use is what the service is meant to use without its limit, in CPUs, as on the machine that its load was made on. On a slower one the
	// client sends as many requests as use that much. 0: it sends all of them anywhere.
	Use float64
	// Pod: the limit is that of a pod with two containers.
	Pod bool
	// Containers are others beside it, with limits in CPUs, by the names that programs are in.
	Containers map[string]float64
	// Healthy: nothing is wrong, and fix must leave it.
	Healthy bool
	// Causes are the keys that are true of it as explain's first finding, the best
	// first; none: it is healthy.
	Causes []string
	// Guilty and Suffers tell the part that spends the quota and the part that waits: any
	// of these words is in the name of its pool or cgroup. None: any part will do, such as
	// where a setting is guilty.
	Guilty, Suffers []string
	// Needs are programs or paths of files, each with the Debian package that has it behind a space.
	Needs []string
	// Jars is the module of bench/services/java whose jars it runs from; "": none. `make service-jars` gets them.
	Jars string
	// Setting is one of the service that explain may advise; the zero value: it has none that can be set.
	Setting Setting
	// Demanded is what a generated fleet calls its demand; "": that is not recorded.
	Demanded string
	// Missed says why it is missed, as found by looking into its recording.
	Missed string

	// OneCPU confines it to one CPU.
	OneCPU bool `yaml:"one_cpu"`
	// Shares are its CPU shares; 0: the usual 1,024.
	Shares uint64
	// As is the user that it runs as; "": root.
	As string
	// Files that it finds in its folder.
	Files map[string]string
	// Prepare is a shell's script that runs in that folder before the service starts, outside its cgroups.
	Prepare string
	// Programs are started one after the other.
	Programs []Program
	// Streams of requests; the first is judged. None: it adds a line to the file "built" for each unit of work.
	Streams []Stream
	// Warm is for how long rivals give it load without its limit, from its start on, before anything is decided or measured: a JVM
	// compiles.
	Warm time.Duration
	// Connections of the client; 0: as many as it has without being told.
	Connections int
	// Again are requests that are sent again and again, beside the streams.
	Again []Repeated
}

// Setting is one of the service's own, which explain may advise.
type Setting struct {
	// Name is in the advice's text, such as UV_THREADPOOL_SIZE.
	Name string
	// Was and Advised are a program's arguments or environment without the advice and with it.
	Was, Advised string
}

// Program is a shell's script to start.
type Program struct {
	// In is the cgroup: "" the service's, "sidecar" another below its limit, "beside" another beside it, "host" none of the case, or one of
	// Containers.
	In  string
	Run string
	// Ready are requests that must be answered before anything else starts.
	Ready []Ask
}

// Ask is a request before its template is filled in.
type Ask struct {
	Protocol string // "": HTTP
	Port     int    // 2: the second one; else the first
	At       string // a port by name, as templates call it; "": Port
	// Text is that of a request. A URL may begin with its path.
	Text string
	Keys int
}

// Stream is one kind of requests of the client.
type Stream struct {
	Ask       `yaml:",inline"`
	Name      string
	PerSecond float64 `yaml:"per_second"`
	Burst     int
	Regular   bool
}

// Repeated is a request that is sent again after each answer and a pause.
type Repeated struct {
	Ask   `yaml:",inline"`
	Pause time.Duration
}

// Packages are the Debian packages that have what it needs.
func (c Case) Packages() (names []string) {
	for _, need := range c.Needs {
		if _, debian, ok := strings.Cut(need, " "); ok && !slices.Contains(names, debian) {
			names = append(names, debian)
		}
	}
	return names
}

// Times is the case with that many times the requests of each stream. Bursts come as often as before, and are that many times as large:
// what a burst needs beside a period's quota is what counts.
func (c Case) Times(times float64) Case {
	c.Streams = slices.Clone(c.Streams)
	for i := range c.Streams {
		s := &c.Streams[i]
		if s.Burst <= 1 {
			s.PerSecond *= times
			continue
		}
		bursts := s.PerSecond / float64(s.Burst)
		s.Burst = max(1, int(math.Round(float64(s.Burst)*times)))
		s.PerSecond = bursts * float64(s.Burst)
	}
	return c
}

// Missing says which programs or jars are not installed and how to install them; "": none.
func (c Case) Missing() string {
	var programs, packages []string
	for _, need := range c.Needs {
		program, debian, _ := strings.Cut(need, " ")
		_, err := exec.LookPath(program)
		if strings.HasPrefix(program, "/") { // also files that are no programs
			_, err = os.Stat(program)
		}
		if err != nil {
			programs, packages = append(programs, program), append(packages, debian)
		}
	}
	if len(programs) > 0 {
		verb := "is"
		if len(programs) > 1 {
			verb = "are"
		}
		return fmt.Sprintf("%s %s not installed: apt-get install %s", strings.Join(programs, ", "), verb, strings.Join(packages, " "))
	}
	if c.Jars == "" {
		return ""
	}
	if jars, err := filepath.Glob(filepath.Join(jarsDir, c.Jars, "*.jar")); err != nil || len(jars) == 0 {
		return fmt.Sprintf("%s has no jars: make service-jars (with Maven)", filepath.Join(jarsDir, c.Jars))
	}
	return ""
}

// jarsDir is where `make service-jars` puts jars, in the tree's top folder, where studies run.
const jarsDir = ".cache/service-jars"

// Cases are the services that fix, explain and forecast are tried on, in the order of the pages. They are read from cases.yaml.
var Cases = sync.OnceValue(func() []Case { return decoded[[]Case]("cases.yaml", casesText) })

// Others are those of other studies. They are read from others.yaml.
var Others = sync.OnceValue(func() []Case { return decoded[[]Case]("others.yaml", othersText) })

// Wide are those that are measured on hosts that are wider than their limits: as many workers as such a host has CPUs. They are read from
// wide.yaml.
var Wide = sync.OnceValue(func() []Case { return decoded[[]Case]("wide.yaml", wideText) })

// Seed is the first seed of a case's requests, by its name: what is compared with each other gets the same, and cases differ.
func Seed(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name)) // a hash.Hash never fails
	return h.Sum64()
}

// Find is the case of a name, of Cases, Others or Wide; false: there is none.
func Find(name string) (Case, bool) {
	for _, c := range slices.Concat(Cases(), Others(), Wide()) {
		if c.Name == name {
			return c, true
		}
	}
	return Case{}, false
}

func decoded[T any](name string, text []byte) (value T) {
	in := yaml.NewDecoder(bytes.NewReader(text))
	in.KnownFields(true)
	if err := in.Decode(&value); err != nil {
		panic(fmt.Sprintf("%s: %v", name, err)) // it is a part of this program
	}
	return value
}
