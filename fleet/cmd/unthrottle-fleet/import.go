package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	"golang.org/x/net/http/httpguts"

	"github.com/unthrottle/unthrottle/fleet/counters"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/store"
	"github.com/unthrottle/unthrottle/internal/text"
)

// importOptions are the flags of import.
type importOptions struct {
	out, cluster, nodeLabel, match string
	until, tokenFile               string
	headers                        []string
	partial                        bool
	lasts                          time.Duration
}

// longestImport bounds what one call asks for.
const longestImport = 31 * 24 * time.Hour

func newImport() *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import URL --out DIR",
		Short: "Make rows of what a Prometheus keeps of the kubelets' counters",
		Long: `Make rows of the counters that kubelets have and a Prometheus keeps, so that 'report' can begin before there are
agents. Counters tell who is stopped, and what all have and use. They do not tell what a container wants, so that
no limit is sized by them: 'export' or an agent does.

URL is that of the Prometheus, or of what answers as one does (Thanos, Mimir, VictoriaMetrics).`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("import: give the Prometheus: 'unthrottle fleet import http://HOST:9090 --out DIR'")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			asked, err := o.options(args[0], time.Now())
			if err != nil {
				return fmt.Errorf("import: %w", err)
			}
			rows, err := counters.Import(cmd.Context(), asked)
			if err != nil {
				return fmt.Errorf("import: %s: %w; %s kept so far: the same call again goes on with the same result",
					text.Sanitize(withoutPassword(args[0]), 0), err, text.Count(rows, "row"))
			}
			if rows == 0 {
				return &noCounters{withoutPassword(args[0]), asked}
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s in %s\n", text.Count(rows, "row"), text.Sanitize(o.out, 0))
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.out, "out", "", "`DIR` for the files; rows that are there already are replaced")
	flags.StringVar(&o.cluster, "cluster", "", "`NAME` of the cluster, for the rows; it selects nothing: --match does")
	flags.StringVar(&o.nodeLabel, "node-label", "node",
		"`LABEL` that names a container's node; instance where there is no other")
	flags.StringVar(&o.match, "match", "", "further matchers of PromQL, such as 'namespace=\"shop\"': `MATCHERS`")
	flags.StringVar(&o.until, "until", "", "last `MOMENT`, as 2026-03-04T05:00:00Z; now if not given; whole hours count")
	flags.DurationVar(&o.lasts, "for", 24*time.Hour, "how long before that, in whole hours, up to 744h")
	flags.StringVar(&o.tokenFile, "token-file", "", "`FILE` with a bearer token")
	flags.StringArrayVar(&o.headers, "header", nil,
		"send this `HEADER` too, such as that of a tenant: 'X-Scope-OrgID: shop'; may be given again")
	flags.BoolVar(&o.partial, "partial", false, "keep also what a store answers without some of its parts")
	return cmd
}

// noCounters is the error for a Prometheus without counters of containers.
type noCounters struct {
	address string
	asked   counters.Options
}

func (e *noCounters) Error() string {
	return fmt.Sprintf("import: %s has no container_cpu_usage_seconds_total of containers from %s to %s: does it scrape "+
		"the kubelets' /metrics/cadvisor? If its series name the node otherwise: --node-label instance",
		text.Sanitize(e.address, 0), e.asked.From.UTC().Format(time.RFC3339), e.asked.Until.UTC().Format(time.RFC3339))
}

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// options checks the flags.
func (o *importOptions) options(address string, now time.Time) (asks counters.Options, err error) {
	asks = counters.Options{Cluster: o.cluster, NodeLabel: o.nodeLabel, Match: o.match,
		Until: now.UTC().Truncate(time.Hour)}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return asks, fmt.Errorf("%s is no address of a Prometheus: give http://HOST:9090",
			text.Quoted(withoutPassword(address)))
	case o.out == "":
		return asks, errors.New("give a folder for the files: --out DIR")
	case !labelName.MatchString(o.nodeLabel):
		return asks, fmt.Errorf("--node-label %s is no label's name", text.Quoted(o.nodeLabel))
	case o.lasts < time.Hour || o.lasts > longestImport || o.lasts%time.Hour != 0:
		return asks, errors.New("--for: give whole hours, from 1h to 744h")
	}
	if o.until != "" {
		if asks.Until, err = parseMoment(o.until); err != nil {
			return asks, err
		}
		asks.Until = asks.Until.Truncate(time.Hour)
	}
	asks.From = asks.Until.Add(-o.lasts)
	asks.Tell = func(text string) { say("%s", text) }
	asks.Keep = func(hour time.Time, rows []demand.Row) error {
		say("%s of %s", text.Count(len(rows), "row"), hour.Format("2006-01-02 15:04"))
		return store.Write(o.out, rows)
	}
	asks.Ask, err = o.ask(address)
	return asks, err
}

// withoutPassword is an address as messages may show it.
func withoutPassword(address string) string {
	if at := strings.LastIndex(address, "@"); at >= 0 {
		return "..." + address[at:]
	}
	return address
}

// ask asks the Prometheus.
func (o *importOptions) ask(address string) (counters.Ask, error) {
	trip := sending{http.Header{}, o.partial}
	for _, header := range o.headers {
		name, value, ok := strings.Cut(header, ":")
		value = strings.TrimSpace(value)
		if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, errors.New("--header: give NAME: VALUE, such as 'X-Scope-OrgID: shop'") // it may be a secret
		}
		trip.header.Add(name, value)
	}
	if o.tokenFile != "" {
		token, err := os.ReadFile(o.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		trip.header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	client, err := api.NewClient(api.Config{Address: address, RoundTripper: trip})
	if err != nil {
		return nil, err
	}
	const patience = 2 * time.Minute // Prometheus' own
	asked := v1.NewAPI(client)
	return func(ctx context.Context, query string, from, until time.Time, step time.Duration) (model.Matrix, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		answer, warnings, _, err := asked.QueryRange(ctx, query, v1.Range{Start: from, End: until, Step: step})
		if err != nil {
			return nil, inItsWords(err)
		}
		for _, w := range warnings { // such as of a store that did not answer, with --partial
			say("it warns: %s", text.Sanitize(w, 0))
		}
		m, ok := answer.(model.Matrix)
		if !ok {
			return nil, fmt.Errorf("it answered a %s, and not a range", answer.Type())
		}
		return m, nil
	}, nil
}

// sending sends headers with each request. Unless partial is allowed it asks stores of several parts to refuse what they know
// in part, as Thanos and VictoriaMetrics do, and refuses what is told to be so.
type sending struct {
	header  http.Header
	partial bool
}

// RoundTrip is that of http.RoundTripper.
func (s sending) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range s.header {
		r.Header[name] = values
	}
	if !s.partial {
		query := r.URL.Query()
		query.Set("partial_response", "false")  // Thanos
		query.Set("deny_partial_response", "1") // VictoriaMetrics
		r.URL.RawQuery = query.Encode()
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || s.partial {
		return answer, err
	}
	const head = 256 // VictoriaMetrics tells it before the data
	body := bufio.NewReader(answer.Body)
	begins, _ := body.Peek(head) // what is wrong is read again
	if partial.Match(begins) {
		answer.Body.Close()
		return nil, errors.New("it answered in part, as some of its parts do not answer: ask again later, or keep it with --partial")
	}
	answer.Body = struct {
		io.Reader
		io.Closer
	}{body, answer.Body}
	return answer, nil
}

var partial = regexp.MustCompile(`^[^\[]*"isPartial"\s*:\s*true`)

// inItsWords is the error for an answer that is none, with what the server says of it, and what may help.
func inItsWords(err error) error {
	refused := new(v1.Error)
	if !errors.As(err, &refused) {
		return err
	}
	const most = 300
	says := refused.Detail
	var document struct{ Error string }
	if json.Unmarshal([]byte(says), &document) == nil && document.Error != "" {
		says = document.Error
	}
	if says = text.Sanitize(strings.TrimSpace(says), most); says != "" {
		err = fmt.Errorf("%w: it says %q", err, says)
	}
	for code, help := range map[int]string{
		http.StatusUnauthorized:    "give a token with --token-file, or a tenant with --header 'X-Scope-OrgID: NAME'",
		http.StatusForbidden:       "give a token with --token-file, or a tenant with --header 'X-Scope-OrgID: NAME'",
		http.StatusTooManyRequests: "ask again later, or for fewer hours with --for",
	} {
		if strings.HasSuffix(refused.Msg, fmt.Sprintf(": %d", code)) {
			err = fmt.Errorf("%w; %s", err, help)
		}
	}
	return err
}
