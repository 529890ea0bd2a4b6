package troubled

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmd "k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kates-go/kates/e2e/cluster"
	"github.com/kates-go/kates/kates"
)

// Options say how large the world is.
type Options struct {
	Objects int // in all
	Rate    int // changes per second
	Listen  string
}

// World is what runs.
type World struct {
	Address    string // of the status page
	Kubeconfig string // of a user who may read the six kinds, and nothing else
}

// Run starts a cluster, fills it, and runs the program and the changes until ctx ends. started is
// called when the page is there.
func Run(ctx context.Context, o Options, started func(*World)) (err error) {
	c, err := cluster.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	folder, err := os.MkdirTemp("", "troubled")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	user, err := prepare(ctx, c)
	if err != nil {
		return err
	}
	w := &World{Kubeconfig: filepath.Join(folder, "kubeconfig")}
	if err := writeKubeconfig(user, w.Kubeconfig); err != nil {
		return err
	}
	admin, err := kates.NewClientFromRESTConfig(c.Config)
	if err != nil {
		return err
	}
	defer admin.Close()
	if err := fill(ctx, admin, o.Objects); err != nil {
		return ended(ctx, err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return err
	}
	w.Address = listener.Addr().String()
	p, err := newProgram(user)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer p.close()
	server := &http.Server{Handler: p.handler(), ReadHeaderTimeout: 10 * time.Second}
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return p.run(ctx) })
	all.Go(func() error { return change(ctx, admin, o) })
	all.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	all.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	started(w)
	return ended(ctx, all.Wait())
}

// ended is err, or nil if it is the end of ctx.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

const reader = "troubled"

// prepare installs the custom kind, and makes the user who may read the six kinds, and write
// ConfigMaps.
func prepare(ctx context.Context, c *cluster.Cluster) (*rest.Config, error) {
	admin, err := kates.NewClientFromRESTConfig(c.Config)
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	definition, err := kates.ParseManifests(crd)
	if err != nil {
		return nil, err
	}
	if err := admin.Create(ctx, definition[0], nil); err != nil {
		return nil, err
	}
	read := []string{"get", "list", "watch"}
	meta := metav1.ObjectMeta{Name: reader}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods", "services", "configmaps", "secrets", "namespaces"}, Verbs: read},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: read},
		{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: read},
		{APIGroups: []string{"troubled.example"}, Resources: []string{"widgets"}, Verbs: read},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "update", "patch"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: reader},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: reader}},
	}
	if err := errors.Join(admin.Create(ctx, role, nil), admin.Create(ctx, binding, nil), admin.WaitFor(ctx, "widgets.troubled.example")); err != nil {
		return nil, err
	}
	return c.AddUser(reader)
}

// writeKubeconfig writes a kubeconfig for a user with a client certificate.
func writeKubeconfig(user *rest.Config, path string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters[reader] = &clientcmdapi.Cluster{Server: user.Host, CertificateAuthority: user.CAFile, CertificateAuthorityData: user.CAData}
	config.AuthInfos[reader] = &clientcmdapi.AuthInfo{
		ClientCertificate: user.CertFile, ClientCertificateData: user.CertData, ClientKey: user.KeyFile, ClientKeyData: user.KeyData,
	}
	config.Contexts[reader] = &clientcmdapi.Context{Cluster: reader, AuthInfo: reader}
	config.CurrentContext = reader
	return clientcmd.WriteToFile(*config, path)
}

// crd is that of a kind whose objects may have any content.
const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.troubled.example
spec:
  group: troubled.example
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

// change changes objects until ctx ends, so many per second: labels of pods and services, data of
// config maps, the replicas of deployments.
func change(ctx context.Context, c *kates.Client, o Options) error {
	tick := time.NewTicker(time.Second / time.Duration(max(o.Rate, 1)))
	defer tick.Stop()
	counts := parts(o.Objects)
	kinds := []string{"pods", "services", "configmaps", "deployments.apps"}
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		kind := kinds[rand.IntN(len(kinds))]
		n := rand.IntN(max(counts[kind], 1))
		patch := fmt.Sprintf(`{"metadata":{"labels":{"change":"%d"}}}`, i)
		target := map[string]any{"kind": kind, "metadata": map[string]any{"namespace": namespaceOf(n), "name": nameOf(n)}}
		if err := c.Patch(ctx, target, kates.MergePatchType, []byte(patch), nil); err != nil && ctx.Err() == nil && !kates.IsNotFound(err) {
			return err
		}
	}
}
