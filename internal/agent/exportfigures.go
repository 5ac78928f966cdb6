package agent

import (
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/unthrottle/unthrottle/internal/demand/collect"
	"github.com/unthrottle/unthrottle/internal/demand/store"
)

// Exporting is what a running agent keeps of rows for questions over many hosts.
type Exporting struct {
	Process int    `json:"process"`
	Dir     string `json:"dir"`
	Bytes   int64  `json:"bytes"`
	// From is the beginning of the oldest rows. Removed is how many older files this agent removed.
	From    time.Time `json:"from"`
	Removed int       `json:"removed_files"`
}

// exportFile is where below the state directory an agent says what it keeps.
const exportFile = "export.json"

// tellExport tells `status` what is kept.
func (a *agent) tellExport(k store.Kept) {
	a.tellStatus(exportFile, Exporting{os.Getpid(), a.Rules.Export.Dir, k.Bytes, k.From, k.Removed})
}

// ReadExporting returns what rows the agent of a state directory keeps; nil: none yet, or it has ended.
func ReadExporting(stateDir string) (*Exporting, error) {
	return readTold(stateDir, exportFile, func(e *Exporting) int { return e.Process })
}

var (
	exportBytesDesc = prometheus.NewDesc("unthrottle_export_bytes",
		"Bytes of the files of rows for questions over many hosts, of this node.", nil, nil)
	exportRemovedDesc = prometheus.NewDesc("unthrottle_export_removed_files_total",
		"Older files of them that were removed, by age or since there were too many bytes.", nil, nil)
)

// exportFigures are those of a sink; nil: none is.
type exportFigures struct{ sink *collect.Sink }

// Describe implements prometheus.Collector.
func (exportFigures) Describe(ch chan<- *prometheus.Desc) {
	ch <- exportBytesDesc
	ch <- exportRemovedDesc
}

// Collect implements prometheus.Collector. Before the first rows are written the bytes are not known.
func (f exportFigures) Collect(ch chan<- prometheus.Metric) {
	if f.sink == nil {
		return
	}
	kept := f.sink.Kept()
	if !kept.From.IsZero() {
		ch <- prometheus.MustNewConstMetric(exportBytesDesc, prometheus.GaugeValue, float64(kept.Bytes))
	}
	ch <- prometheus.MustNewConstMetric(exportRemovedDesc, prometheus.CounterValue, float64(kept.Removed))
}
