package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// fleetFor is how long the agent looks. Its rows' five minutes may end in it.
const fleetFor = 20 * time.Second

// fleetContainers is how many containers runDocker starts below /docker.
const fleetContainers = 3

// fleetService is the name that rows give the compose service of docker.
const fleetService = "shop/cart"

// fleet has an agent keep rows of Docker's containers, kills a second one, and asks the fleet's questions of what is there.
func (s *suite) fleet(d *docker) {
	rows := filepath.Join(s.dir, "rows")
	agent, err := s.exporter(d, rows)
	if err == nil {
		time.Sleep(fleetFor)
		end(agent)
	}
	if err == nil && len(rowFiles(rows)) == 0 {
		err = errors.New("it left no file of rows")
	}
	if s.check("fleet: an agent keeps rows of Docker's containers", err) != nil {
		return
	}
	if agent, err = s.exporter(d, rows); err == nil {
		time.Sleep(fleetFor / 4)
		err = agent.Process.Kill()
		_ = agent.Wait() // it was killed
	}
	s.check("fleet: another is killed amid its rows", err)

	r, err := s.fleetReport(rows)
	if s.check("fleet: 'unthrottle fleet report' reads them", err) != nil {
		return
	}
	s.check("fleet: the killed agent changed no row and left no half one", r.whole())
	s.check("fleet: of the compose service two containers are told, and what their quota stops", r.cart())
	s.check("fleet: what was seen too shortly to be sized keeps its cores", r.keeps())

	got, err := s.run(nil, nil, s.exe, "fleet", "report", rows)
	if err == nil && (strings.ContainsAny(got.out, "\x1b\u202e") || !strings.Contains(got.out, fleetService)) {
		err = fmt.Errorf("it says %q", got.out)
	}
	s.check("fleet: the text has the service, and a hostile label does nothing", err)

	var p struct {
		Hosts      int
		LowerBound int `json:"lower_bound"`
	}
	err = s.decode(&p, nil, "fleet", "plan", rows, "-o", "json")
	if err == nil && (p.Hosts != 1 || p.LowerBound != 1) {
		err = fmt.Errorf("%+v: want one host", p)
	}
	s.check("fleet: 'unthrottle fleet plan' puts all on this host", err)
}

// exporter starts an agent that keeps rows.
func (s *suite) exporter(d *docker, rows string) (*exec.Cmd, error) {
	config, listen := filepath.Join(s.dir, "fleet.yaml"), "127.0.0.1:"+freePort()
	text := fmt.Sprintf("version: 1\nmode: observe\nlisten: %s\nscope: /docker\nstate_dir: %s\nexport: {dir: %s, cluster: e2e, node: n1}\n",
		listen, filepath.Join(s.dir, "fleet-state"), rows)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	cmd, err := s.server("fleet-agent", d.env, func() error { return get("http://"+listen+"/healthz", nil) }, s.exe,
		"agent", "--config", config, "--nri", "off")
	s.stops = append(s.stops, func() { end(cmd) })
	return cmd, err
}

// rowFiles are the files of rows below a folder.
func rowFiles(dir string) (files []string) {
	_ = filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error { // a folder that is not there yet has none
		if err == nil && strings.HasSuffix(name, ".parquet") {
			files = append(files, name)
		}
		return nil
	})
	return files
}

// fleetRows is what a report says of the rows.
type fleetRows struct {
	Containers int
	Services   []struct {
		Name         string
		Containers   int
		CoresNow     *float64 `json:"cores_now"`
		CoresAfter   *float64 `json:"cores_after"`
		StoppedShare *float64 `json:"stopped_share"`
		SpentBy      *string  `json:"spent_by"`
		Unknown      int
	}
	Ledger struct {
		CoresNow   float64 `json:"cores_now"`
		CoresAfter float64 `json:"cores_after"`
		Saved      float64
	}
	Unknown []struct{ Containers int }
	Input   struct {
		Refused     []any `json:"files_left_out"`
		Rows        int64
		Copies      int64 `json:"rows_copied"`
		Overlapping int64 `json:"rows_overlapping"`
		Problems    []any `json:"rows_left_out"`
	}
}

func (s *suite) fleetReport(rows string) (r fleetRows, err error) {
	got, err := s.run(nil, nil, s.exe, "fleet", "report", rows, "-o", "json")
	if err == nil {
		err = json.Unmarshal([]byte(got.out), &r)
	}
	return r, err
}

// whole: one row of each container and five minutes, and nothing that cannot be read.
func (r fleetRows) whole() error {
	in := r.Input
	if r.Containers != fleetContainers || in.Rows != fleetContainers && in.Rows != 2*fleetContainers || in.Copies+
		in.Overlapping != 0 || len(in.Refused)+len(in.Problems) != 0 {
		return fmt.Errorf("%d containers; %+v", r.Containers, in)
	}
	return nil
}

// cart: one of its two containers spends its own limit of 0.1 CPUs all the time.
func (r fleetRows) cart() error {
	for _, s := range r.Services {
		if s.Name != fleetService {
			continue
		}
		if s.Containers != 2 || s.CoresNow == nil || math.Abs(*s.CoresNow-0.2) > 1e-9 || s.StoppedShare == nil ||
			*s.StoppedShare < 0.1 || s.SpentBy == nil || *s.SpentBy != fleetService {
			return fmt.Errorf("%+v", s)
		}
		return nil
	}
	return fmt.Errorf("it is not among %+v", r.Services)
}

// keeps: rows of less than five minutes size nothing.
func (r fleetRows) keeps() error {
	unknown := 0
	for _, u := range r.Unknown {
		unknown += u.Containers
	}
	for _, s := range r.Services {
		if s.CoresAfter != nil || s.Unknown != s.Containers {
			return fmt.Errorf("it tells what it cannot know: %+v", s)
		}
	}
	if l := r.Ledger; l.CoresNow <= 0 || l.CoresAfter != l.CoresNow || l.Saved != 0 {
		return fmt.Errorf("%+v", l)
	}
	if unknown != fleetContainers {
		return fmt.Errorf("%d containers are not known, want %d", unknown, fleetContainers)
	}
	return nil
}
