package kates_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// After an error the next try has the newest snapshot.
func ExampleRun() {
	fake, err := katestest.NewFake(katestest.WithClientOptions(kates.WithLogger(slog.New(slog.DiscardHandler))), katestest.WithManifests(`
apiVersion: v1
kind: Service
metadata: {name: web}
`))
	if err != nil {
		panic(err)
	}
	defer fake.Close()

	type Snapshot struct{ Services []*corev1.Service }
	ctx, cancel := context.WithCancel(context.Background()) // in a program: signal.NotifyContext
	defer cancel()
	full := true
	err = kates.Run(ctx, fake.Client, func(ctx context.Context, snap *Snapshot) error {
		if full {
			full = false
			return errors.New("the disk is full")
		}
		fmt.Println("rebuilt for", len(snap.Services), "services")
		cancel()
		return nil
	}, kates.WithBackoff(time.Millisecond, time.Second), kates.WithOnError(func(err error, attempt int) {
		fmt.Printf("try %d: %v\n", attempt, err)
	}))
	fmt.Println("ended:", err)
	// Output:
	// try 1: the disk is full
	// rebuilt for 1 services
	// ended: <nil>
}

// Each namespace with its quotas is one output. After an error only that namespace is tried
// again.
func ExampleRunEach() {
	fake, err := katestest.NewFake(katestest.WithClientOptions(kates.WithInterval(0)), katestest.WithManifests(`
apiVersion: v1
kind: Namespace
metadata: {name: red}
---
apiVersion: v1
kind: Namespace
metadata: {name: blue}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: red}
`))
	if err != nil {
		panic(err)
	}
	defer fake.Close()
	client := fake.Client // in a program: kates.NewClient(kates.ClientConfig{})

	type Tenant struct {
		Namespaces []*corev1.Namespace
		ConfigMaps []*corev1.ConfigMap
	}
	ctx, cancel := context.WithCancel(context.Background()) // in a program: signal.NotifyContext
	defer cancel()
	err = kates.RunEach(ctx, client, func(ctx context.Context, tenant string, snap *Tenant) error {
		if len(snap.Namespaces) == 0 {
			fmt.Println(tenant, "is gone")
			cancel()
			return nil
		}
		fmt.Println(tenant, "has", len(snap.ConfigMaps), "config maps")
		if tenant == "red" && len(snap.ConfigMaps) == 1 { // its next snapshot has own writes
			return errors.Join(client.Delete(ctx, snap.ConfigMaps[0], nil), client.Delete(ctx, snap.Namespaces[0], nil))
		}
		return nil
	}, kates.Query{Name: "Namespaces", Key: kates.ByName}, kates.Query{Name: "ConfigMaps", Key: kates.ByNamespace})
	fmt.Println("ended:", err)
	// Output:
	// blue has 0 config maps
	// red has 1 config maps
	// red is gone
	// ended: <nil>
}

type ingressInputs struct { // the configuration of a proxy comes from these
	Ingresses []*networkingv1.Ingress
	Services  []*corev1.Service
	Secrets   []*corev1.Secret
}

type ingressStatuses struct{ Ingresses []*networkingv1.Ingress }

// writeStatus writes the address into the status of each ingress that has none.
func writeStatus(ctx context.Context, client *kates.Client, snap *ingressStatuses) error {
	for _, ingress := range snap.Ingresses {
		if len(ingress.Status.LoadBalancer.Ingress) > 0 {
			continue
		}
		_, err := kates.ModifyStatus(ctx, client, ingress, func(i *networkingv1.Ingress) error {
			i.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}}
			return nil
		})
		if err != nil {
			return err
		}
		fmt.Println("wrote the status of", ingress.Name)
	}
	return nil
}

// An ingress program needs two runs: each replica configures its proxy, and one of them, the
// leader, writes status. Both runs share one client, and so its watches: kinds that both need are
// listed, watched and stored once.
func ExampleLeaderElection() {
	fake, err := katestest.NewFake(katestest.WithManifests(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: default}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
`))
	if err != nil {
		panic(err)
	}
	defer fake.Close()
	client := fake.Client // in a program: kates.NewClient(kates.ClientConfig{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	configured, written, ends := make(chan int, 10), make(chan bool, 10), make(chan error)

	go func() { // on every replica
		ends <- kates.Run(ctx, client, func(ctx context.Context, snap *ingressInputs) error {
			configured <- len(snap.Ingresses)
			return nil
		})
	}()
	fmt.Println("configured for", <-configured, "ingresses")

	lease := kates.LeaderElection{Namespace: "default", Name: "ingress-status"}
	// on the leader; a replica that loses the lease follows again, and still configures
	go func() {
		err := kates.ErrLeadershipLost
		for errors.Is(err, kates.ErrLeadershipLost) {
			err = kates.Run(ctx, client, func(ctx context.Context, snap *ingressStatuses) error {
				defer func() { written <- true }()
				return writeStatus(ctx, client, snap)
			}, lease)
		}
		ends <- err
	}()
	<-written
	cancel()
	fmt.Println("ended:", errors.Join(<-ends, <-ends))
	// Output:
	// configured for 1 ingresses
	// wrote the status of web
	// ended: <nil>
}
