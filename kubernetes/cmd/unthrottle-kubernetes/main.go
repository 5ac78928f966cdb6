// Unthrottle-kubernetes is the agent's sidecar in Kubernetes: it turns policies into the agent's rules file.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/unthrottle/unthrottle/kubernetes/controller"
	"github.com/unthrottle/unthrottle/kubernetes/policies"
)

const usage = `unthrottle-kubernetes turns ThrottlePolicies into the rules file of the agent
on this node.

  unthrottle-kubernetes init  --base FILE --out FILE
      writes a file that only observes, for the time before the policies are known
  unthrottle-kubernetes watch --base FILE --out FILE
      keeps the file true to the policies, and their statuses true

`

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
	lease := flags.String("lease", "unthrottle-policies", "the `NAME` of the lease: its holder writes statuses")
	least := flags.Duration("least-interval", time.Minute, "the least time between two changes of the file; each ends what the agent is trying")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	if len(args) == 0 || args[0] != "init" && args[0] != "watch" {
		if err := flags.Parse(args); err != nil {
			return err
		}
		flags.Usage()
		return errors.New("say init or watch")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	own, err := os.ReadFile(*base)
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
	config, err := api(*kubeconfig)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	return controller.Run(ctx, controller.Options{Client: client, Base: own, Out: *out, Identity: *identity, Namespace: *namespace, LeaseName: *lease,
		LeastInterval: *least, LeaseInterval: 15 * time.Second, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
}

// api says how to reach the API server.
func api(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}
