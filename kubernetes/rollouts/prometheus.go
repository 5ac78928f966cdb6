package rollouts

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
)

const (
	// mostBytes of an answer are read; answerIn is how long it may take.
	mostBytes = 16 << 20
	answerIn  = 30 * time.Second
)

// asker asks for queries' values. No address is asked by way of another one.
var asker = &http.Client{Timeout: answerIn, Transport: &http.Transport{Proxy: nil, MaxIdleConns: 4, IdleConnTimeout: time.Minute},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// sample is a value of a query with its labels.
type sample struct {
	labels map[string]string
	value  float64
}

// ask has a Prometheus evaluate a query at a time. Errors name address, cause and, where there is one, the way out.
func ask(ctx context.Context, at, query string, when time.Time) ([]sample, error) {
	form := url.Values{"query": {query}, "time": {strconv.FormatInt(when.Unix(), 10)}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(at, "/")+"/api/v1/query",
		strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := asker.Do(request)
	if err != nil {
		return nil, fmt.Errorf("prometheus: %s", text.Sanitize(err.Error(), 300))
	}
	defer answer.Body.Close()
	var got struct {
		Status, Error string
		Warnings      []string
		Data          struct {
			ResultType string
			Result     json.RawMessage
		}
	}
	err = json.NewDecoder(io.LimitReader(answer.Body, mostBytes)).Decode(&got)
	switch {
	case err != nil:
		return nil, fmt.Errorf("prometheus %s answers %s, which is no answer to a query; give the URL without /api/v1", at,
			text.Sanitize(answer.Status, 60))
	case got.Status != "success":
		return nil, fmt.Errorf("prometheus %s: %s", at, text.Sanitize(got.Error, 300))
	}
	// Until prometheus/prometheus#14327 (2024) hints on the query, which may be false alarms, were among the warnings.
	warnings := slices.DeleteFunc(got.Warnings, func(w string) bool { return strings.HasPrefix(w, "PromQL info") })
	if len(warnings) > 0 {
		return nil, fmt.Errorf("prometheus %s: the answer has warnings, so that a part of it may be missing: %s", at,
			text.Sanitize(strings.Join(warnings, "; "), 300))
	}
	var vector []struct {
		Metric map[string]string
		Value  *point
	}
	switch got.Data.ResultType {
	case "scalar":
		var only point
		if err := json.Unmarshal(got.Data.Result, &only); err != nil {
			return nil, fmt.Errorf("prometheus %s: %s", at, text.Sanitize(err.Error(), 300))
		}
		return []sample{{value: only.value}}, nil
	case "vector":
		if err := json.Unmarshal(got.Data.Result, &vector); err != nil {
			return nil, fmt.Errorf("prometheus %s: %s", at, text.Sanitize(err.Error(), 300))
		}
	default:
		return nil, fmt.Errorf("prometheus %s: the query gives a %s: write one that gives a value now", at,
			text.Sanitize(got.Data.ResultType, 30))
	}
	out := make([]sample, len(vector))
	for i, v := range vector {
		if v.Value == nil {
			return nil, fmt.Errorf("prometheus %s: the query gives histograms: write one that gives numbers, as by histogram_quantile(...)",
				at)
		}
		out[i] = sample{v.Metric, v.Value.value}
	}
	return out, nil
}

// point is a value at a time: [1435781451.781, "1"].
type point struct{ value float64 }

// UnmarshalJSON reads it.
func (p *point) UnmarshalJSON(data []byte) error {
	var pair [2]any
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	words, _ := pair[1].(string)
	var err error
	p.value, err = strconv.ParseFloat(words, 64)
	return err
}

// largest is the largest value of a query; nil: it gives none. NaN is no value.
func largest(ctx context.Context, at, query string, when time.Time) (*float64, error) {
	samples, err := ask(ctx, at, query, when)
	var most *float64
	for _, s := range samples {
		if !math.IsNaN(s.value) && (most == nil || s.value > *most) {
			most = &s.value
		}
	}
	if err == nil && most == nil {
		err = fmt.Errorf("prometheus %s: the guard's query gives no value; where nothing is counted write: QUERY or vector(0)", at)
	}
	return most, err
}

// byPod are the values of a query by the label pod, of one namespace. Of several of a pod the largest counts.
func byPod(ctx context.Context, at, query, namespace string, when time.Time) (map[string]float64, error) {
	samples, err := ask(ctx, at, query, when)
	out := map[string]float64{}
	for _, s := range samples {
		pod := s.labels["pod"]
		if in, ok := s.labels["namespace"]; pod == "" || ok && in != namespace || math.IsNaN(s.value) {
			continue
		}
		if was, there := out[pod]; !there || s.value > was {
			out[pod] = s.value
		}
	}
	if err == nil && len(samples) > 0 && len(out) == 0 {
		err = fmt.Errorf("prometheus %s: the query of latencies gives no value by pod: keep the label pod, as in sum by (pod, le) (...)",
			at)
	}
	return out, err
}
