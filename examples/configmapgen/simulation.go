package main

import (
	"context"
	_ "embed"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/examples/configmapgen/generator"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

//go:embed crd.yaml
var crd string

//go:embed example.yaml
var example string

// simulation is a user of the operator in a simulated cluster, with another client.
type simulation struct {
	user *kates.Client
}

// simulate returns a client of the simulated cluster, and a function that ends both. The example's
// objects exist before the program starts.
func simulate(options ...kates.Option) (client *kates.Client, stop func(), err error) {
	scheme, err := generator.Scheme()
	if err != nil {
		return nil, nil, err
	}
	server, err := katestest.StartServer(katestest.WithManifests(crd + "\n---\n" + example))
	if err != nil {
		return nil, nil, err
	}
	client, err = kates.NewClientFromRESTConfig(server.Config, append(options, kates.WithScheme(scheme))...)
	user, failed := kates.NewClientFromRESTConfig(server.Config, kates.WithScheme(scheme))
	if err = errors.Join(err, failed); err != nil {
		server.Close()
		return nil, nil, err
	}
	s := &simulation{user: user}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { s.change(ctx) })
	return client, func() {
		cancel()
		done.Wait()
		user.Close()
		client.Close()
		server.Close()
	}, nil
}

// change makes a change every now and then, over and over.
func (s *simulation) change(ctx context.Context) {
	banner := generator.ConfigMapTemplate{Name: "banner", Data: map[string]string{"banner.txt": "Back soon."}}
	tls := generator.ConfigMapTemplate{Name: "tls", Data: map[string]string{"ca": `{{secret "ca" "crt"}}`}}
	steps := []func(){
		func() { s.secret(ctx, "db", map[string]string{"user": "shop2", "host": "db.example.com"}) },
		// its secret does not exist; banner is no longer wanted
		func() { s.template(ctx, "web", 1, tls) },
		func() { s.secret(ctx, "ca", map[string]string{"crt": "CERTIFICATE"}) },
		func() { s.create(ctx, "shop", banner) },
		func() { s.remove(ctx, &generator.ConfigTemplate{}, "shop") },
		func() { s.remove(ctx, &corev1.Secret{}, "ca") }, // the generated ConfigMap stays
		func() { s.template(ctx, "web", 1, banner) },
		func() { s.secret(ctx, "db", map[string]string{"user": "shop", "host": "db.example.com"}) },
	}
	for step := 0; ; step++ {
		select {
		case <-time.After(300 * time.Millisecond):
			steps[step%len(steps)]()
		case <-ctx.Done():
			return
		}
	}
}

// The methods below fail only when ctx ends.

func (s *simulation) secret(ctx context.Context, name string, data map[string]string) {
	secret := &corev1.Secret{Data: map[string][]byte{}}
	secret.Namespace, secret.Name = "default", name
	for key, value := range data {
		secret.Data[key] = []byte(value)
	}
	_ = s.user.Upsert(ctx, nil, secret, nil)
}

// template keeps the first of the wanted config maps, and adds more.
func (s *simulation) template(ctx context.Context, name string, keep int, more ...generator.ConfigMapTemplate) {
	root := &generator.ConfigTemplate{}
	root.Namespace, root.Name = "default", name
	_, _ = kates.Modify(ctx, s.user, root, func(t *generator.ConfigTemplate) error {
		t.Spec.ConfigMaps = append(t.Spec.ConfigMaps[:keep], more...)
		return nil
	})
}

func (s *simulation) create(ctx context.Context, name string, wanted ...generator.ConfigMapTemplate) {
	root := &generator.ConfigTemplate{Spec: generator.ConfigTemplateSpec{ConfigMaps: wanted}}
	root.Namespace, root.Name = "default", name
	_ = s.user.Create(ctx, root, nil)
}

func (s *simulation) remove(ctx context.Context, o kates.Object, name string) {
	o.SetNamespace("default")
	o.SetName(name)
	_ = s.user.Delete(ctx, o, nil)
}
