package kates_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// What one try could not do, the next one does, with the newest snapshot.
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

	type Snapshot struct{ Services []*kates.Service }
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
	}, kates.WithBackoff(time.Millisecond, time.Second), kates.OnError(func(err error, attempt int) {
		fmt.Printf("try %d: %v\n", attempt, err)
	}))
	fmt.Println("ended:", err)
	// Output:
	// try 1: the disk is full
	// rebuilt for 1 services
	// ended: <nil>
}

// An ingress program needs two runs: each replica configures its proxy, and one of them, the leader, writes status. Both
// runs share one client, and so its watches: what both need is listed, watched and stored once.
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

	type Config struct { // what a proxy is made of
		Ingresses []*kates.Ingress
		Services  []*kates.Service
		Secrets   []*kates.Secret
	}
	type Status struct {
		Ingresses []*kates.Ingress
	}
	configured, written := make(chan int), make(chan string)

	ends := make(chan error)
	go func() { // on every replica
		ends <- kates.Run(ctx, client, func(ctx context.Context, snap *Config) error {
			select {
			case configured <- len(snap.Ingresses):
			case <-ctx.Done():
			}
			return nil
		})
	}()
	fmt.Println("configured for", <-configured, "ingresses")

	lease := kates.LeaderElection{Namespace: "default", Name: "ingress-status"}
	go func() { // on the leader; who has lost follows again, and goes on with its configuration
		for {
			err := kates.Run(ctx, client, func(ctx context.Context, snap *Status) error {
				for _, ingress := range snap.Ingresses {
					if len(ingress.Status.LoadBalancer.Ingress) > 0 {
						continue
					}
					_, err := kates.ModifyStatus(ctx, client, ingress, func(i *kates.Ingress) error {
						i.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}}
						return nil
					})
					if err != nil {
						return err
					}
					written <- ingress.Name
				}
				return nil
			}, lease)
			if !errors.Is(err, kates.ErrLeadershipLost) {
				ends <- err
				return
			}
		}
	}()
	fmt.Println("wrote the status of", <-written)
	cancel()
	fmt.Println("ended:", errors.Join(<-ends, <-ends))
	// Output:
	// configured for 1 ingresses
	// wrote the status of web
	// ended: <nil>
}
