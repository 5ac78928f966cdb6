// Unthrottle-kubernetes is the agent's sidecar in Kubernetes: it turns policies into the agent's rules file, and shows users what
// the agent sees of their pods. As a job of its own it is a recommender of VerticalPodAutoscalers.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/recent"
	"github.com/unthrottle/unthrottle/internal/infile"
	"github.com/unthrottle/unthrottle/internal/podresize/sidecar"
	"github.com/unthrottle/unthrottle/kubernetes/controller"
	"github.com/unthrottle/unthrottle/kubernetes/demandfeed"
	"github.com/unthrottle/unthrottle/kubernetes/installed"
	"github.com/unthrottle/unthrottle/kubernetes/podprobes"
	"github.com/unthrottle/unthrottle/kubernetes/policies"
	"github.com/unthrottle/unthrottle/kubernetes/reader"
	"github.com/unthrottle/unthrottle/kubernetes/recommender"
	"github.com/unthrottle/unthrottle/kubernetes/resizer"
)

const usage = `unthrottle-kubernetes stands beside the agent of one node.

  unthrottle-kubernetes init  --base FILE --out FILE
      writes a rules file that only observes, for the time before the policies are known
  unthrottle-kubernetes watch --base FILE --out FILE
      keeps the rules file true to the ThrottlePolicies, and their statuses true;
      with --pods it also tells the agent which probes the kubelet makes, and makes
      events of what the agent finds of them
  unthrottle-kubernetes read  --agent URL --listen ADDRESS
      shows each user what the agent sees of the pods that the user may get;
      'kubectl unthrottle' reads it
  unthrottle-kubernetes resize --socket SOCKET
      raises and restores CPU limits in the specs of pods for the agent, by pods/resize
  unthrottle-kubernetes demand --base FILE
      tells the cluster's schedulers, by the object NodeDemand of this node, what its
      containers want, of the rows that the agent keeps by the export of that file
  unthrottle-kubernetes recommend --report FILE
      gives VerticalPodAutoscalers that name the recommender "unthrottle" what the
      JSON of 'unthrottle fleet report' says, once; it stands beside no agent
  unthrottle-kubernetes test --labels SELECTOR --for TIME
      helm test: waits until the agent of this node has throttled periods of this pod's
      container "burner", which runs
  unthrottle-kubernetes compute --for TIME

`

// A reader asks as often as its users do, and a recommender twice for each object; the API server's own fairness bounds them. client-go's
// 5 requests per second would take a recommender an hour for 9,000 objects.
const (
	clientQPS   = 50
	clientBurst = 100
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "unthrottle-kubernetes:", err)
		os.Exit(1)
	}
}

// options are the flags of all subcommands.
type options struct {
	base, out, kubeconfig, identity, namespace, lease, agent, listen, socket, pods, node, report, labels, agentHost string
	interval, least, oldest, length, look                                                                           time.Duration
	rollouts                                                                                                        bool
}

// flags are those that fill the options.
func (o *options) flags() *flag.FlagSet {
	flags := flag.NewFlagSet("unthrottle-kubernetes", flag.ContinueOnError)
	flags.StringVar(&o.base, "base", "/etc/unthrottle.yaml", "the chart's own `FILE`")
	flags.StringVar(&o.out, "out", "/run/unthrottle/rules.yaml", "the agent's `FILE`")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "the `FILE` that names the API server; else the pod's service account")
	flags.StringVar(&o.identity, "identity", os.Getenv("POD_NAME"), "the `NAME` of this pod, for the lease")
	flags.StringVar(&o.namespace, "namespace", os.Getenv("POD_NAMESPACE"), "the `NAMESPACE` of the lease")
	flags.DurationVar(&o.interval, "lease-interval", time.Minute,
		"renew the lease once per `TIME`; one that was not renewed for three of them is taken over")
	flags.StringVar(&o.lease, "lease", "unthrottle-policies", "the `NAME` of the lease: its holder writes statuses")
	flags.StringVar(&o.agent, "agent", "", "the `AGENT`: of read unix:PATH, the socket of its --answers (default "+reader.DefaultAgent+
		"); of watch its URL (default "+podprobes.DefaultAgent+")")
	flags.StringVar(&o.listen, "listen", reader.DefaultListen, "the loopback `ADDRESS` where users read")
	flags.StringVar(&o.socket, "socket", sidecar.Socket, "the `SOCKET` where the agent has pods resized")
	flags.DurationVar(&o.least, "least-interval", time.Minute, "the least time between two changes of the file; each "+
		"ends what the agent is trying")
	flags.StringVar(&o.pods, "pods", "", "the `FILE` that tells the agent of the probes of this node's pods; none by default")
	flags.StringVar(&o.node, "node", os.Getenv("NODE_NAME"), "the `NAME` of this node, for demand, --pods and --rollouts")
	flags.DurationVar(&o.look, "look-interval", time.Minute, "demand: look for new rows once per `TIME`")
	flags.BoolVar(&o.rollouts, "rollouts", false, "roll out policies that ask for it, by a share of the pods at a time")
	flags.StringVar(&o.report, "report", "", "the `FILE` with the JSON of 'unthrottle fleet report'")
	flags.DurationVar(&o.oldest, "oldest", 48*time.Hour, "do nothing with a report whose last row is older than this `TIME`")
	flags.StringVar(&o.labels, "labels", "", "the agents' pods, by their `LABELS`")
	flags.StringVar(&o.agentHost, "agent-host", "", "test: the `ADDRESS` of this node's agent; its pod's by default")
	flags.DurationVar(&o.length, "for", time.Minute, "test, compute: for how much `TIME`")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	return flags
}

// subcommands are what the program does, by the first word.
var subcommands = map[string]func(o *options, ctx context.Context, log *slog.Logger) error{
	"init":      (*options).init,
	"watch":     (*options).watch,
	"read":      (*options).read,
	"resize":    (*options).resize,
	"demand":    (*options).demand,
	"recommend": (*options).recommend,
	"test":      (*options).test,
	"compute":   (*options).compute,
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := o.flags()
	if len(args) == 0 || subcommands[args[0]] == nil {
		if err := flags.Parse(args); err != nil {
			return err
		}
		flags.Usage()
		return errors.New("say init, watch, read, resize, demand, recommend, test or compute")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s: %q is no flag", args[0], flags.Arg(0))
	}
	return subcommands[args[0]](&o, ctx, slog.New(slog.NewTextHandler(os.Stderr, nil)))
}

func (o *options) read(ctx context.Context, log *slog.Logger) error {
	return read(ctx, o.kubeconfig, o.listen, cmp.Or(o.agent, reader.DefaultAgent), log)
}

func (o *options) recommend(ctx context.Context, log *slog.Logger) error {
	return recommend(ctx, o.kubeconfig, o.report, o.oldest, log)
}

// resize resizes pods for the agent until ctx ends.
func (o *options) resize(ctx context.Context, log *slog.Logger) error {
	config, err := asked(o.kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	return resizer.Serve(ctx, o.socket, client, objects, log)
}

// demand tells schedulers what this node's containers want until ctx ends.
func (o *options) demand(ctx context.Context, log *slog.Logger) error {
	own, err := o.ownRules(ctx)
	if err != nil {
		return err
	}
	rules, err := policy.ParseRules(own)
	if err != nil {
		return fmt.Errorf("%s: %w", o.base, err)
	}
	if rules.Export.Dir == "" {
		return fmt.Errorf("%s: the agent keeps no rows: give it export: {dir: FOLDER}, as the chart does with demand.enabled=true", o.base)
	}
	config, err := api(o.kubeconfig)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	nodes, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	rows := recent.New(rules.Export.Dir, demand.Names{Cluster: rules.Export.Cluster, Node: cmp.Or(rules.Export.Node, o.node)})
	return demandfeed.Run(ctx, demandfeed.Options{Client: client, Metadata: nodes, Node: o.node, Read: rows.Spec, Every: o.look, Log: log})
}

// compute uses CPUs for the installation's test.
func (o *options) compute(ctx context.Context, _ *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, o.length)
	defer cancel()
	installed.Compute(ctx)
	return nil
}

func (o *options) test(ctx context.Context, _ *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, o.length)
	defer cancel()
	return test(ctx, o.kubeconfig, o.labels, installed.Pod{Namespace: o.namespace, Name: o.identity, Container: "burner",
		Node: os.Getenv("NODE_NAME"), AgentHost: o.agentHost})
}

// ownRules are the chart's own file.
func (o *options) ownRules(ctx context.Context) ([]byte, error) {
	return infile.ReadAll(ctx, o.base, nil, policy.MaxConfigBytes)
}

// init writes the file with which the agent begins.
func (o *options) init(ctx context.Context, _ *slog.Logger) error {
	own, err := o.ownRules(ctx)
	if err != nil {
		return err
	}
	waiting, err := policies.Waiting(own)
	if err != nil {
		return err
	}
	return controller.WriteFile(o.out, waiting)
}

// watch keeps the file and the policies' statuses true until ctx ends, and tells the agent of pods where that is asked for.
func (o *options) watch(ctx context.Context, log *slog.Logger) error {
	own, err := o.ownRules(ctx)
	if err != nil {
		return err
	}
	if o.identity == "" || o.namespace == "" {
		return errors.New("--identity and --namespace are missing (POD_NAME and POD_NAMESPACE)")
	}
	if o.rollouts && o.node == "" {
		return errors.New("--node is missing (NODE_NAME): --rollouts treats pods of one node")
	}
	config, err := api(o.kubeconfig)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	leases, err := coordination.NewForConfig(config)
	if err != nil {
		return err
	}
	if o.pods != "" {
		ended, err := o.tellPods(ctx, config, log)
		if err != nil {
			return err
		}
		defer ended()
	}
	return controller.Run(ctx, controller.Options{Client: client, Leases: leases, Base: own, Out: o.out,
		Identity: o.identity, Namespace: o.namespace, LeaseName: o.lease,
		LeastInterval: o.least, LeaseInterval: o.interval, Rollouts: o.rollouts, Node: o.node, Log: log})
}

// tellPods tells the agent of the probes of this node's pods until ended is called, or ctx ends.
func (o *options) tellPods(ctx context.Context, config *rest.Config, log *slog.Logger) (ended func(), err error) {
	agent := cmp.Or(o.agent, podprobes.DefaultAgent)
	if u, err := url.Parse(agent); err != nil || u.Scheme != "http" || u.Host == "" {
		return nil, fmt.Errorf("--agent %q: with --pods give a URL such as %s", agent, podprobes.DefaultAgent)
	}
	if o.node == "" {
		return nil, errors.New("--node is missing (NODE_NAME): --pods tells of the pods of one node")
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		done <- podprobes.Run(ctx, podprobes.Options{Client: typed, Node: o.node, Out: o.pods, Agent: agent,
			LeastInterval: 2 * time.Second, AskInterval: o.interval, Log: log})
	}()
	return func() {
		cancel()
		if err := <-done; err != nil {
			log.Error("the agent is not told of pods", "error", err)
		}
	}, nil
}

// read serves the reader until ctx ends.
func read(ctx context.Context, kubeconfig, listen, agent string, log *slog.Logger) error {
	if !strings.HasPrefix(agent, "unix:/") {
		return fmt.Errorf("--agent %q: give unix:/PATH, the socket of the agent's --answers: recordings leave it nowhere else", agent)
	}
	client, err := clientOf(kubeconfig)
	if err != nil {
		return err
	}
	return reader.Serve(ctx, listen, reader.Options{Agent: agent, Access: reader.Cluster(client), Log: log}, func(at net.Addr) {
		log.Info("users read here", "listen", at.String(), "agent", agent)
	})
}

// recommend gives the autoscalers of the cluster what a report says.
func recommend(ctx context.Context, kubeconfig, file string, oldest time.Duration, log *slog.Logger) error {
	if file == "" {
		return errors.New("recommend: give a report: --report FILE, as 'unthrottle fleet report DIR --json-file FILE' writes it")
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := recommender.ReadReport(f)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if age := time.Since(r.Until); age > oldest {
		return fmt.Errorf("%s: its last row is of %s, older than %s: make a new report, or give another --oldest", file,
			r.Until.UTC().Format(time.RFC3339), oldest)
	}
	config, err := asked(kubeconfig)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	done, err := recommender.Update(ctx, client, &r, time.Now())
	if err != nil {
		return err
	}
	for _, why := range done.Failed {
		log.Warn("an autoscaler was left as it is", "why", why)
	}
	log.Info("recommended", "autoscalers", done.Objects, "written", done.Written, "known", done.Known)
	if len(done.Failed) > 0 {
		return fmt.Errorf("%d of %d autoscalers were left as they are", len(done.Failed), done.Objects)
	}
	return nil
}

// test asks this node's agent about a container of this pod.
func test(ctx context.Context, kubeconfig, labels string, p installed.Pod) error {
	if labels == "" || p.Name == "" || p.Namespace == "" || p.Node == "" {
		return errors.New("test: --labels, POD_NAME, POD_NAMESPACE and NODE_NAME are needed; helm test gives them")
	}
	client, err := clientOf(kubeconfig)
	if err != nil {
		return err
	}
	periods, agent, err := installed.Throttled(ctx, client, p.Namespace, labels, p, 2*time.Second)
	if err != nil {
		return err
	}
	fmt.Printf("node %s: agent %s sees %s/%s/%s, throttled in %d periods\n", p.Node, agent, p.Namespace, p.Name, p.Container, periods)
	return nil
}

// clientOf is a client of the API server that may ask as often as users do.
func clientOf(kubeconfig string) (kubernetes.Interface, error) {
	config, err := asked(kubeconfig)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// asked says how to reach the API server for clients that may ask as often as users do.
func asked(kubeconfig string) (*rest.Config, error) {
	config, err := api(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = clientQPS, clientBurst
	return config, nil
}

// api says how to reach the API server.
func api(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}
