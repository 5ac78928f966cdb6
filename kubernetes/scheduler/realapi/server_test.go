package realapi

import (
	"testing"

	authn "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/unthrottle/unthrottle/test/apiserver"
)

// server is an API server with a client.
type server struct {
	*apiserver.Server
	config *rest.Config
	client kubernetes.Interface
}

// newServer starts an API server with nothing in it but a namespace.
func newServer(t testing.TB) *server {
	t.Helper()
	s := &server{Server: apiserver.New(t, "e2e-scheduler")}
	s.StartAPI("--disable-admission-plugins", "ServiceAccount") // nobody makes the default service account that pods need
	s.config = &rest.Config{Host: s.URL(), BearerToken: apiserver.AdminToken, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAFile: s.CAFile()}}
	var err error
	if s.client, err = kubernetes.NewForConfig(s.config); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.CoreV1().Namespaces().Create(t.Context(), &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "unthrottle"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// kubeconfig writes a file with the API server and a token of a service account; for a pod of the namespace, unless that is nil.
func (s *server) kubeconfig(t testing.TB, namespace, account string, of *core.Pod) (file string) {
	t.Helper()
	request := &authn.TokenRequest{}
	if of != nil {
		request.Spec.BoundObjectRef = &authn.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: of.Name, UID: of.UID}
	}
	got, err := s.client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: s.config.Host, CertificateAuthority: s.config.CAFile}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: got.Status.Token}
	c.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "x"
	file = s.File("kubeconfig-" + account)
	if err := clientcmd.WriteToFile(*c, file); err != nil {
		t.Fatal(err)
	}
	return file
}
