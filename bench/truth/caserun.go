package main

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/bench/services"
	"github.com/unthrottle/unthrottle/internal/cure/fix"
	"github.com/unthrottle/unthrottle/test/study"
)

// caseRun is one case with what was measured of it. A case that was measured to its end is a result, which the tree keeps, so that services
// measured on different days make one page. Recordings stay in the cache.
type caseRun struct {
	study.Made
	Case     string        `json:"case"`
	Rounds   int           `json:"rounds"`
	Each     time.Duration `json:"each_ns"`
	Complete bool          `json:"complete"`
	// Load is the part of the case's requests that the client sent on a slower host; 0: all of them.
	Load float64 `json:"load,omitempty"`
	Look *look   `json:"look"`
	Fix  *fixed  `json:"fix"`
	// Variants are what was applied, "leave it" first.
	Variants []variant `json:"variants"`
	Runs     []oneRun  `json:"runs"`
	// Followed are runs of the service started anew, as it was and with the advice of Look followed.
	Followed []oneRun `json:"advice_followed,omitempty"`

	took time.Duration // of a look by samples
}

// load is the factor of the client's requests.
func (k *caseRun) load() float64 { return cmp.Or(k.Load, 1) }

// look is what the tool says before anything is changed.
type look struct {
	Cause   string `json:"cause"` // the key of the first cause; "": none
	Verdict string `json:"verdict"`
	// Guilty and Suffers are the parts that the first cause names.
	Guilty  []string `json:"guilty,omitempty"`
	Suffers string   `json:"suffers,omitempty"`
	// Advice has what pools are told to set, "POOL: TEXT" each.
	Advice []string `json:"advice,omitempty"`
	// Throttled periods of Periods of the limit that binds; 0 of 0: none was counted.
	Throttled uint64 `json:"throttled_periods,omitempty"`
	Periods   uint64 `json:"periods,omitempty"`
	// Judged is the thread pool whose responses decide; "": all, or none has enough.
	Judged string `json:"judged_pool"`
	// Recommended is what forecast marks, by the name of a variant; "": leave it.
	Recommended string `json:"recommended"`
	Answer      string `json:"answer"`
	Rows        []row  `json:"rows"`
}

// fixed is what fix did by itself.
type fixed struct {
	Answer string `json:"answer"`
	// Chosen is the first row that fix took or recommends, by the name of a variant; "":
	// none.
	Chosen string `json:"chosen"`
	// Applied: fix wrote it. More CPU than the limit is only named.
	Applied bool   `json:"applied"`
	Verdict string `json:"verdict"`
	// Left is what fix left in force, by the name of a variant; "": nothing.
	Left string `json:"left"`
	Rows []row  `json:"rows"`
	// Failed is the error where fix ended without a result.
	Failed string `json:"failed,omitempty"`
	// Trial is what it measured in turns; nil: there was no trial.
	Trial *fix.Trial `json:"trial,omitempty"`
}

// oneRun is one measurement of one variant.
type oneRun struct {
	Variant string `json:"variant"`
	Round   int    `json:"round"`
	// P50, P99 are of the requests that the case judges by, in ms; null: not measured.
	P50       *float64 `json:"p50_ms"`
	P99       *float64 `json:"p99_ms"`
	Requests  uint64   `json:"requests"`
	Errors    uint64   `json:"errors"`
	FirstFail string   `json:"first_failure,omitempty"`
	// Done is the work done per second, where a case counts work; null: it does not.
	Done *float64 `json:"done_per_second"`
	// Beside are p99s of the other streams, in ms, by name.
	Beside map[string]float64 `json:"beside_p99_ms,omitempty"`
	// UsedCPUs are those of the container, OthersCPUs those of all else on the host.
	UsedCPUs   float64 `json:"used_cpus"`
	OthersCPUs float64 `json:"others_cpus"`
	// Throttled periods of Periods of the limit that binds; 0 of 0: there was none.
	Throttled uint64 `json:"throttled_periods"`
	Periods   uint64 `json:"periods"`
	// LateP99 is the p99 of how late the client itself sent, in ms; null: no client.
	LateP99 *float64 `json:"client_late_p99_ms"`
}

// recordedName is the recording that a case's first look is made of.
func recordedName(dir, name string) string { return filepath.Join(dir, name+".rec") }

// results are the cases that were measured to their end, the last one of each.
type results struct{ study.Lines[caseRun] }

// readResults reads a file of results; none without it.
func readResults(file string) (*results, error) {
	l, err := study.ReadLines[caseRun](file)
	if err != nil {
		return nil, err
	}
	return &results{*l}, nil
}

// of is the result of a case; without one it is empty.
func (r *results) of(name string) caseRun {
	for _, k := range r.All {
		if k.Case == name {
			return k
		}
	}
	return caseRun{Case: name}
}

// all are those of cases, empty where there is none.
func (r *results) all(of []services.Case) (all []caseRun) {
	for _, c := range of {
		all = append(all, r.of(c.Name))
	}
	return all
}

// put keeps a result instead of an earlier one of that case. The order is that of the names, so that nothing else changes in the file.
func (r *results) put(k caseRun) error {
	r.All = append(slices.DeleteFunc(r.All, func(was caseRun) bool { return was.Case == k.Case }), k)
	slices.SortFunc(r.All, func(a, b caseRun) int { return strings.Compare(a.Case, b.Case) })
	return r.Write()
}

// runsOf returns the measured rounds of a variant.
func (k *caseRun) runsOf(variant string) []oneRun {
	var runs []oneRun
	for _, r := range k.Runs {
		if r.Variant == variant && r.Round > 0 {
			runs = append(runs, r)
		}
	}
	return runs
}
