package kates_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// An Ingress has another turn when the secret comes that its turn has looked up.
func ExampleLookup() {
	type Host struct {
		Ingresses []*networkingv1.Ingress
		Secrets   kates.Lookup[*corev1.Secret] // belongs to no key: look-ups are recorded
	}
	secretsOf := func(in *networkingv1.Ingress) (names []types.NamespacedName) {
		for _, tls := range in.Spec.TLS {
			names = append(names, types.NamespacedName{Name: tls.SecretName}) // in its namespace
		}
		return names
	}
	fake, err := katestest.NewFake(katestest.WithClientOptions(kates.WithInterval(0)), katestest.WithManifests(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: prod}
spec: {tls: [{secretName: cert}]}
`))
	if err != nil {
		panic(err)
	}
	defer fake.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err = kates.RunEach(ctx, fake.Client, func(ctx context.Context, key string, host *Host) error {
		for _, in := range host.Ingresses {
			for _, name := range secretsOf(in) {
				if _, err := host.Secrets.Get(in.Namespace, name.Name); err == nil {
					fmt.Println(key, "is served")
					cancel()
					continue
				}
				// its next turn comes with the secret
				fmt.Println(key, "waits for the secret", name.Name)
				cert := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: name.Name}}
				if err := fake.Client.Create(ctx, cert, nil); err != nil {
					return err
				}
			}
		}
		return nil
	},
		kates.Query{Name: "Ingresses", Key: kates.ByNamespacedName},
		// no other secret is watched
		kates.Query{Name: "Secrets", Refs: []kates.Ref{kates.RefsOf("Ingresses", secretsOf)}})
	fmt.Println(err)
	// Output:
	// prod/web waits for the secret cert
	// prod/web is served
	// <nil>
}
