package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/kates-go/kates/kates"
)

// manifests are what kubectl apply -k applies. A field that their kinds do not have is an error.
func manifests(t *testing.T, overlay string) []kates.Object {
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join("..", "..", "deploy", overlay))
	require.NoError(t, err)
	text, err := all.AsYaml()
	require.NoError(t, err)
	objects, err := kates.ParseManifests(string(text), kates.Strict())
	require.NoError(t, err)
	return objects
}

// shop is the application of the demonstration, without its namespaces and classes.
func shop(t *testing.T) (objects []kates.Object) {
	text, err := os.ReadFile("../../demo/shop.yaml")
	require.NoError(t, err)
	all, err := kates.ParseManifests(string(text))
	require.NoError(t, err)
	for _, o := range all {
		switch o.GetObjectKind().GroupVersionKind().Kind {
		case "Namespace", "IngressClass", "GatewayClass":
		default:
			objects = append(objects, o)
		}
	}
	return objects
}

func namespace(name string) kates.Object {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// container is a container of the gateway's Deployment.
type container struct {
	command []string // and its arguments
	preStop []string
}

// containers returns how the gateway and nginx are started, with a folder of this machine in place
// of the one that they share.
func containers(t *testing.T, objects []kates.Object, dir string) map[string]container {
	here := strings.NewReplacer("/run/gateway", dir, "$(NAMESPACE)", "gateway", "$(ZONE)", "", "sleep 10", "sleep 0")
	all := map[string]container{}
	for _, o := range objects {
		d, ok := o.(*appsv1.Deployment)
		if !ok {
			continue
		}
		for _, c := range d.Spec.Template.Spec.Containers {
			var one container
			for _, text := range append(c.Command, c.Args...) {
				one.command = append(one.command, here.Replace(text))
			}
			if exec := c.Lifecycle.PreStop.Exec; exec != nil {
				for _, text := range exec.Command {
					one.preStop = append(one.preStop, here.Replace(text))
				}
			}
			all[c.Name] = one
		}
	}
	require.Len(t, all, 2)
	return all
}

// right is to do something with a resource in a namespace, or everywhere.
type right struct{ namespace, group, resource, verb string }

func (r right) String() string {
	return fmt.Sprintf("%s %s.%s in %q", r.verb, r.resource, r.group, r.namespace)
}

// rights are those that the manifests give.
func rights(objects []kates.Object) (all []right) {
	for _, o := range objects {
		var rules []rbacv1.PolicyRule
		switch role := o.(type) {
		case *rbacv1.ClusterRole:
			rules = role.Rules
		case *rbacv1.Role:
			rules = role.Rules
		}
		for _, rule := range rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						all = append(all, right{o.GetNamespace(), group, resource, verb})
					}
				}
			}
		}
	}
	return all
}

// unused are rights of which no request has made use. A server that streams lists is not asked for
// them, and others are: who may watch may list.
func unused(given []right, requests []request) (all []right) {
	for _, r := range given {
		if !slices.ContainsFunc(requests, func(q request) bool {
			verb := q.Verb == r.verb || r.verb == "list" && q.Verb == "watch"
			return verb && q.ObjectRef.APIGroup == r.group && q.ObjectRef.path() == r.resource &&
				(r.namespace == "" || r.namespace == q.ObjectRef.Namespace)
		}) {
			all = append(all, r)
		}
	}
	return all
}
