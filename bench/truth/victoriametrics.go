package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

func victoriametricsQueries() testCase {
	return testCase{
		name:    "victoriametrics-queries",
		truth:   "VictoriaMetrics answers 120 small queries a second, beside four times a second two range queries at once over an hour of 1,500 series, which it spreads over all its workers. Goroutines run on all CPUs and spend the quota early; the mean use is below the limit.",
		limit:   0.5,
		causes:  []string{"burst"},
		guilty:  []string{"victoria"},
		suffers: []string{"victoria"},
		needs:   []need{{"victoria-metrics", "victoria-metrics"}},
		start:   startVictoriaMetrics,
	}
}

func startVictoriaMetrics(ctx context.Context, s *stage) (service, error) {
	addr, _, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	args := []string{"victoria-metrics", "-storageDataPath=" + s.dir + "/data", "-httpListenAddr=" + addr, "-retentionPeriod=12"}
	if err := s.start(program{args: args}); err != nil {
		return service{}, err
	}
	site := "http://" + addr
	if err := s.ready(ctx, request{Protocol: protocolHTTP, Text: site + "/health"}); err != nil {
		return service{}, err
	}
	end := time.Now().Truncate(time.Hour)
	if err := importSamples(ctx, site, end); err != nil {
		return service{}, err
	}
	// What was imported is found from then on.
	if err := s.ready(ctx, request{Protocol: protocolHTTP, Text: site + "/internal/force_flush"}); err != nil {
		return service{}, err
	}
	small := request{Protocol: protocolHTTP, Text: fmt.Sprintf("%s/api/v1/query?query=sold{shop=%%22#%%22}&time=%d", site, end.Unix()), Keys: soldSeries}
	ranges := request{Protocol: protocolHTTP, Text: fmt.Sprintf("%s/api/v1/query_range?query=sum(rate(sold[5m]))by(kind)&start=%d&end=%d&step=15&nocache=1",
		site, end.Add(-time.Hour).Unix(), end.Unix())}
	return service{
		streams:  []loadgen.Stream{{Name: "small", PerSecond: 120}, {Name: "range", PerSecond: 8, Burst: 2, Background: true}},
		requests: []request{small, ranges}, connections: 32,
	}, s.ready(ctx, ranges)
}

// soldSeries is how many series importSamples makes.
const soldSeries = 1500

// importSamples gives the database an hour of samples before end, one in 15 seconds of each series.
func importSamples(ctx context.Context, site string, end time.Time) error {
	const step, each = 15 * time.Second, 241
	var text bytes.Buffer
	for series := range soldSeries {
		for i := range each {
			at := end.Add(-time.Duration(each-1-i) * step)
			fmt.Fprintf(&text, "sold{shop=\"%d\",kind=\"%d\"} %d %d\n", series, series%10, i*(series%7+1), at.UnixMilli())
		}
	}
	ask, err := http.NewRequestWithContext(ctx, http.MethodPost, site+"/api/v1/import/prometheus", &text)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(ask)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("import: %s", answer.Status)
	}
	return nil
}
