package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // of kubeconfigs with auth-provider
	"k8s.io/klog/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	klog.SetLogger(klog.Logger{}) // a forwarded connection that ends is an error to client-go; what fails we say
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	cmd := newRoot(&plugin{IOStreams: streams, flags: genericclioptions.NewConfigFlags(true), poll: time.Second})
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// plugin is what all commands share.
type plugin struct {
	genericiooptions.IOStreams
	flags          *genericclioptions.ConfigFlags
	agentNamespace string
	agentLabels    string
	serviceAccount string
	output         string
	allNamespaces  bool
	container      string
	// poll is how often what is waited for is looked at.
	poll time.Duration
	// dial stands for the API server in tests; nil: the kubeconfig's.
	dial func(*plugin) (*connected, error)
	// reach stands for the port-forward in tests; nil: the real one.
	reach reach
}

func newRoot(p *plugin) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-unthrottle",
		Short: "See which pods the kernel stops for their CPU limit, why, and what would help",
		Long: `See which pods the kernel stops for their CPU limit, why, and what would help.

It needs the agent on the nodes (helm chart unthrottle with reader.enabled=true)
and, in its namespace, the rights 'list' on pods, and 'get' and 'create' on
pods/portforward. Of pods you see what 'get pods' shows in their namespace;
recordings need 'create pods/exec'. 'fix' and 'restore' write ThrottlePolicies
(policies.enabled=true of the chart), and nothing else. 'look' needs no agent:
see its help.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl unthrottle"},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	flags := root.PersistentFlags()
	p.flags.AddFlags(flags)
	flags.StringVar(&p.agentNamespace, "agent-namespace", "unthrottle", "`NAMESPACE` of the agent's pods")
	flags.StringVar(&p.agentLabels, "agent-labels", "app.kubernetes.io/name=unthrottle", "`SELECTOR` of the agent's pods")
	flags.StringVar(&p.serviceAccount, "service-account", "",
		"read as this service account, `[NAMESPACE/]NAME`, by a token for unthrottle alone; for users with a client certificate")
	flags.StringVarP(&p.output, "output", "o", "", "json: data; wide: more columns of top")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		switch p.output {
		case "", "json", "wide":
			return nil
		}
		return fmt.Errorf("unable to match a printer suitable for the output format %q, allowed formats are: json,wide", p.output)
	}
	root.CompletionOptions.HiddenDefaultCmd = true // kubectl completes by kubectl_complete-unthrottle
	root.AddCommand(p.newTop(), p.newStatus(), p.newPolicy(), p.newExplain(), p.newLook(), p.newForecast(), p.newFix(),
		p.newRestore())
	return root
}

// onePod takes the one argument POD.
func onePod(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("give one POD, as POD or pod/POD; its namespace with -n")
	}
	return nil
}

// addPod adds what all commands about a pod have.
func (p *plugin) addPod(cmd *cobra.Command) *cobra.Command {
	cmd.Args = onePod
	cmd.Flags().StringVarP(&p.container, "container", "c", "", "`NAME` of the container, where the pod has several")
	cmd.ValidArgsFunction = p.completePods
	return cmd
}
