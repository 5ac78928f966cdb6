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
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/infile"
	"github.com/unthrottle/unthrottle/internal/podresize/sidecar"
	"github.com/unthrottle/unthrottle/kubernetes/controller"
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

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("unthrottle-kubernetes", flag.ContinueOnError)
	base := flags.String("base", "/etc/unthrottle.yaml", "the chart's own `FILE`")
	out := flags.String("out", "/run/unthrottle/rules.yaml", "the agent's `FILE`")
	kubeconfig := flags.String("kubeconfig", "", "the `FILE` that names the API server; else the pod's service account")
	identity := flags.String("identity", os.Getenv("POD_NAME"), "the `NAME` of this pod, for the lease")
	namespace := flags.String("namespace", os.Getenv("POD_NAMESPACE"), "the `NAMESPACE` of the lease")
	interval := flags.Duration("lease-interval", time.Minute,
		"renew the lease once per `TIME`; one that was not renewed for three of them is taken over")
	lease := flags.String("lease", "unthrottle-policies", "the `NAME` of the lease: its holder writes statuses")
	agent := flags.String("agent", "", "the `AGENT`: of read unix:PATH, the socket of its --answers (default "+reader.DefaultAgent+
		"); of watch its URL (default "+podprobes.DefaultAgent+")")
	listen := flags.String("listen", reader.DefaultListen, "the loopback `ADDRESS` where users read")
	socket := flags.String("socket", sidecar.Socket, "the `SOCKET` where the agent has pods resized")
	least := flags.Duration("least-interval", time.Minute, "the least time between two changes of the file; each "+
		"ends what the agent is trying")
	pods := flags.String("pods", "", "the `FILE` that tells the agent of the probes of this node's pods; none by default")
	node := flags.String("node", os.Getenv("NODE_NAME"), "the `NAME` of this node, for --pods and --rollouts")
	spreads := flags.Bool("rollouts", false, "roll out policies that ask for it, by a share of the pods at a time")
	report := flags.String("report", "", "the `FILE` with the JSON of 'unthrottle fleet report'")
	oldest := flags.Duration("oldest", 48*time.Hour, "do nothing with a report whose last row is older than this `TIME`")
	labels := flags.String("labels", "", "the agents' pods, by their `LABELS`")
	agentHost := flags.String("agent-host", "", "test: the `ADDRESS` of this node's agent; its pod's by default")
	length := flags.Duration("for", time.Minute, "test, compute: for how much `TIME`")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	if len(args) == 0 || !slices.Contains([]string{"init", "watch", "read", "resize", "recommend", "test", "compute"}, args[0]) {
		if err := flags.Parse(args); err != nil {
			return err
		}
		flags.Usage()
		return errors.New("say init, watch, read, resize, recommend, test or compute")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s: %q is no flag", args[0], flags.Arg(0))
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if args[0] == "read" {
		return read(ctx, *kubeconfig, *listen, cmp.Or(*agent, reader.DefaultAgent), log)
	}
	if args[0] == "resize" {
		client, err := clientOf(*kubeconfig)
		if err != nil {
			return err
		}
		return resizer.Serve(ctx, *socket, client, log)
	}
	if args[0] == "recommend" {
		return recommend(ctx, *kubeconfig, *report, *oldest, log)
	}
	if args[0] == "test" || args[0] == "compute" {
		ctx, cancel := context.WithTimeout(ctx, *length)
		defer cancel()
		if args[0] == "compute" {
			installed.Compute(ctx)
			return nil
		}
		return test(ctx, *kubeconfig, *labels, installed.Pod{Namespace: *namespace, Name: *identity, Container: "burner",
			Node: os.Getenv("NODE_NAME"), AgentHost: *agentHost})
	}
	own, err := infile.ReadAll(ctx, *base, nil, policy.MaxConfigBytes)
	if err != nil {
		return err
	}
	if args[0] == "init" {
		waiting, err := policies.Waiting(own)
		if err != nil {
			return err
		}
		return controller.WriteFile(*out, waiting)
	}
	if *identity == "" || *namespace == "" {
		return errors.New("--identity and --namespace are missing (POD_NAME and POD_NAMESPACE)")
	}
	if *spreads && *node == "" {
		return errors.New("--node is missing (NODE_NAME): --rollouts treats pods of one node")
	}
	config, err := api(*kubeconfig)
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
	if *pods != "" {
		*agent = cmp.Or(*agent, podprobes.DefaultAgent)
		if u, err := url.Parse(*agent); err != nil || u.Scheme != "http" || u.Host == "" {
			return fmt.Errorf("--agent %q: with --pods give a URL such as %s", *agent, podprobes.DefaultAgent)
		}
		if *node == "" {
			return errors.New("--node is missing (NODE_NAME): --pods tells of the pods of one node")
		}
		typed, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() {
			done <- podprobes.Run(ctx, podprobes.Options{Client: typed, Node: *node, Out: *pods, Agent: *agent,
				LeastInterval: 2 * time.Second, AskInterval: *interval, Log: log})
		}()
		defer func() {
			cancel()
			if err := <-done; err != nil {
				log.Error("the agent is not told of pods", "error", err)
			}
		}()
	}
	return controller.Run(ctx, controller.Options{Client: client, Leases: leases, Base: own, Out: *out,
		Identity: *identity, Namespace: *namespace, LeaseName: *lease,
		LeastInterval: *least, LeaseInterval: *interval, Rollouts: *spreads, Node: *node, Log: log})
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
	config, err := api(kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = clientQPS, clientBurst
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
	config, err := api(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = clientQPS, clientBurst
	return kubernetes.NewForConfig(config)
}

// api says how to reach the API server.
func api(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}
