package source_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/fleet/source"
	"github.com/kates-go/kates/kates/katestest"
)

const aKubeconfig = `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: secret}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`

// print prints the clusters of a source, and what is wrong with others.
func print(from fleet.Source) {
	f, err := fleet.New(fleet.Options{Sources: []fleet.Source{from}})
	if err != nil {
		panic(err)
	}
	defer f.Close()
	changed, stop := f.Listen()
	defer stop()
	for len(f.Status().Clusters) == 0 || (len(f.Clusters()) == 0 && f.Status().Clusters[0].Rotation == "") {
		<-changed
	}
	for _, c := range f.Status().Clusters {
		fmt.Println(c.Name, c.Labels, strings.ReplaceAll(c.Rotation, ": ", ":\n"))
	}
}

// Cluster API writes a Secret with a kubeconfig for each of its clusters.
func ExampleSecrets() {
	secret := &corev1.Secret{Type: "cluster.x-k8s.io/secret", Data: map[string][]byte{"value": []byte(aKubeconfig)}}
	secret.Namespace, secret.Name = "shop", "prod-kubeconfig"
	secret.Labels = map[string]string{"cluster.x-k8s.io/cluster-name": "prod"}
	home, err := katestest.NewFake(katestest.WithObjects(secret))
	if err != nil {
		panic(err)
	}
	defer home.Close()
	print(source.Secrets(home.Client, source.SecretOptions{
		Form: source.ClusterAPI, Hosts: []string{"127.0.0.1"}, // by default nothing leads to this machine
	}))
	// Output:
	// shop/prod map[cluster.x-k8s.io/cluster-name:prod]
}

// A kubeconfig that comes from a cluster does not run programs here unless that is allowed.
func ExampleAllow() {
	secret := &corev1.Secret{Data: map[string][]byte{"kubeconfig": []byte(`
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-program}}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`)}}
	secret.Namespace, secret.Name, secret.Labels = "shop", "prod", map[string]string{"clusters": "yes"}
	home, err := katestest.NewFake(katestest.WithObjects(secret))
	if err != nil {
		panic(err)
	}
	defer home.Close()
	print(source.Secrets(home.Client, source.SecretOptions{LabelSelector: "clusters=yes"}))
	// Output:
	// shop/prod map[] Secret shop/prod:
	// the configuration is refused:
	// it runs a program (exec):
	// source.AllowExec allows it
}

// Each file is a cluster, named like the file.
func ExampleDirectory() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "prod.yaml"), []byte(aKubeconfig), 0o600); err != nil {
		panic(err)
	}
	print(source.Directory(dir))
	// Output:
	// prod map[]
}

// Each context is a cluster. Without an argument all of them are.
func ExampleContexts() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "config")
	if err := os.WriteFile(path, []byte(aKubeconfig), 0o600); err != nil {
		panic(err)
	}
	print(source.Contexts(path, "x"))
	// Output:
	// x map[]
}

// What a Kustomization of Flux deploys to is a cluster.
func ExampleFlux() {
	secret := &corev1.Secret{Data: map[string][]byte{"value": []byte(aKubeconfig)}}
	secret.Namespace, secret.Name = "shop", "prod"
	home, err := katestest.NewFake(katestest.WithObjects(secret), katestest.WithManifests(`
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {namespace: shop, name: web}
spec: {kubeConfig: {secretRef: {name: prod}}}
`))
	if err != nil {
		panic(err)
	}
	defer home.Close()
	print(source.Flux(home.Client, source.FluxOptions{Hosts: []string{"127.0.0.1"}}))
	// Output:
	// shop/prod map[]
}

// The program says by which plugin to log in, and the profile says where.
func ExampleClusterProfiles() {
	home, err := katestest.NewFake(katestest.WithManifests(`
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ClusterProfile
metadata: {namespace: shop, name: prod, labels: {x-k8s.io/cluster-manager: m}}
status:
  accessProviders: [{name: example, cluster: {server: "https://127.0.0.1:1"}}]
`))
	if err != nil {
		panic(err)
	}
	defer home.Close()
	print(source.ClusterProfiles(home.Client, source.ProfileOptions{Hosts: []string{"127.0.0.1"}, Providers: []source.AccessProvider{{
		Name: "example",
		Exec: clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "no-such-program"},
	}}}))
	// Output:
	// shop/prod map[x-k8s.io/cluster-manager:m]
}
