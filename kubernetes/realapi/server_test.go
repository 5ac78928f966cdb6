package realapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authn "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/unthrottle/unthrottle/test/apiserver"
	"github.com/unthrottle/unthrottle/test/wait"
)

// server is an API server with its clients.
type server struct {
	*apiserver.Server
	t       *testing.T
	config  *rest.Config
	client  kubernetes.Interface
	objects dynamic.Interface
}

// newServer starts an API server with nothing in it but namespaces.
func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{Server: apiserver.New(t, "e2e-policies"), t: t}
	s.writeFront()
	s.startAPI()
	s.config = &rest.Config{Host: s.URL(), BearerToken: apiserver.AdminToken, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAFile: s.CAFile()}}
	var err error
	if s.client, err = kubernetes.NewForConfig(s.config); err != nil {
		t.Fatal(err)
	}
	if s.objects, err = dynamic.NewForConfig(s.config); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"unthrottle", "shop-a", "shop-b", "batch"} {
		if _, err := s.client.CoreV1().Namespaces().Create(t.Context(),
			&core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// startAPI starts the API server, again if it was killed. It knows other servers behind it by the certificate of writeFront.
func (s *server) startAPI() {
	s.t.Helper()
	s.StartAPI("--requestheader-client-ca-file", s.File("front/ca.crt"),
		"--requestheader-username-headers", "X-Remote-User", "--requestheader-group-headers", "X-Remote-Group",
		"--requestheader-extra-headers-prefix", "X-Remote-Extra-", "--proxy-client-cert-file", s.File("front/tls.crt"),
		"--proxy-client-key-file", s.File("front/tls.key"))
}

// manager starts kube-controller-manager with some of its controllers.
func (s *server) manager(controllers string, flags ...string) *apiserver.Process {
	s.t.Helper()
	return apiserver.Start(s.t, s.Dir, "controller-manager", exec.Command(filepath.Join(s.Bin, "kube-controller-manager"), append(flags,
		"--kubeconfig", s.kubeconfigAs("manager-kubeconfig", apiserver.AdminToken), "--leader-elect=false", "--controllers="+controllers,
		"--bind-address=127.0.0.1", "--secure-port="+fmt.Sprint(apiserver.FreePorts(s.t, 1)[0]), "--cert-dir", s.File("manager"))...))
}

// docs are the objects of a YAML text.
func docs(t *testing.T, text []byte) (given []*unstructured.Unstructured) {
	t.Helper()
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		u := &unstructured.Unstructured{}
		if err := d.Decode(&u.Object); errors.Is(err, io.EOF) {
			return given
		} else if err != nil {
			t.Fatal(err)
		}
		if len(u.Object) > 0 {
			given = append(given, u)
		}
	}
}

// golden are the objects of a golden file of the chart.
func golden(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "packaging", "chart", "golden", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return docs(t, text)
}

// of is where objects of this kind are.
func (s *server) of(u *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	groups, err := restmapper.GetAPIGroupResources(s.client.Discovery())
	if err != nil {
		return nil, err
	}
	kind := u.GroupVersionKind()
	mapping, err := restmapper.NewDiscoveryRESTMapper(groups).RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	return s.objects.Resource(mapping.Resource).Namespace(u.GetNamespace()), nil
}

// create makes an object; a key that its schema does not know is an error, as with kubectl.
func (s *server) create(u *unstructured.Unstructured) error {
	resourceInterface, err := s.of(u)
	if err != nil {
		return err
	}
	_, err = resourceInterface.Create(s.t.Context(), u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	return err
}

// install makes the objects of a golden file that are not there yet.
func (s *server) install(name string) {
	s.t.Helper()
	s.makes(name, golden(s.t, name))
}

// makes makes objects that are not there yet, and waits until definitions are served.
func (s *server) makes(name string, given []*unstructured.Unstructured) {
	s.t.Helper()
	for _, u := range given {
		if err := s.create(u); err != nil && !apierrors.IsAlreadyExists(err) {
			s.t.Fatalf("%s: %s %s: %v", name, u.GetKind(), u.GetName(), err)
		}
		if u.GetKind() != "CustomResourceDefinition" {
			continue
		}
		resourceInterface, err := s.of(u)
		if err != nil {
			s.t.Fatal(err)
		}
		said := ""
		wait.Until(s.t, u.GetName()+" is served", func() bool {
			now, err := resourceInterface.Get(s.t.Context(), u.GetName(), metav1.GetOptions{})
			if err != nil {
				said = err.Error()
				return false
			}
			said = fmt.Sprint(now.Object["status"])
			return strings.Contains(said, "type:Established") &&
				strings.Contains(said, "status:True type:Established") && !strings.Contains(said, "NonStructuralSchema")
		}, func() string { return said })
	}
}

// token is one of a service account, as the kubelet asks for it.
func (s *server) token(namespace, account string, audiences ...string) string {
	s.t.Helper()
	seconds := int64(3607)
	got, err := s.client.CoreV1().ServiceAccounts(namespace).CreateToken(s.t.Context(), account,
		&authn.TokenRequest{Spec: authn.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return got.Status.Token
}

// kubeconfig writes the file that names the API server and has a token.
func (s *server) kubeconfig(token string) string {
	s.t.Helper()
	return s.kubeconfigAs("kubeconfig", token)
}

// kubeconfigAs writes such a file under a name: for a program that may read it later.
func (s *server) kubeconfigAs(name, token string) string {
	s.t.Helper()
	file := s.File(name)
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: s.config.Host, CertificateAuthority: s.config.CAFile}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	c.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*c, file); err != nil {
		s.t.Fatal(err)
	}
	return file
}

// program builds unthrottle-kubernetes.
func (s *server) program() string {
	s.t.Helper()
	file := s.File("unthrottle-kubernetes")
	if _, err := os.Stat(file); err == nil {
		return file
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", file, "../cmd/unthrottle-kubernetes").CombinedOutput(); err != nil {
		s.t.Fatalf("go build: %v\n%s", err, out)
	}
	return file
}

// arguments are those of a container of the chart's DaemonSet.
func arguments(t *testing.T, file, container string) []string {
	t.Helper()
	for _, u := range golden(t, file) {
		if u.GetKind() != "DaemonSet" {
			continue
		}
		for _, list := range []string{"initContainers", "containers"} {
			all, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", list)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range all {
				if c := c.(map[string]any); c["name"] == container {
					args, _, err := unstructured.NestedStringSlice(c, "args")
					if err != nil {
						t.Fatal(err)
					}
					return args
				}
			}
		}
	}
	t.Fatalf("the DaemonSet of %s has no container %s", file, container)
	return nil
}

// chartFile is the agent's own file, as the chart writes it.
func chartFile(t *testing.T, from string) string {
	t.Helper()
	for _, u := range golden(t, from) {
		if u.GetKind() == "ConfigMap" {
			text, _, err := unstructured.NestedString(u.Object, "data", "unthrottle.yaml")
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
	}
	t.Fatal("the chart has no ConfigMap")
	return ""
}
