package kates_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// The roles of a gateway: it watches hosts everywhere and Secrets in one namespace, writes the
// status of hosts, and has a leader.
func ExampleRules() {
	fake, err := katestest.NewFake(katestest.WithKinds(katestest.Kind{APIVersion: "example.com/v1", Kind: "Host"}))
	if err != nil {
		panic(err)
	}
	defer fake.Close()
	client := fake.Client // knows the kinds: one of a cluster will do, too

	type Snapshot struct {
		Hosts   []map[string]any `kates:"hosts.example.com"`
		Secrets []*corev1.Secret
	}
	roles, err := kates.Rules(context.Background(), client, "gateway",
		kates.Watches[Snapshot](
			kates.Query{Name: "Secrets", Namespace: "certs"},
			kates.LeaderElection{Namespace: "gateway", Name: "status"},
		),
		kates.Uses("hosts.example.com", kates.CanModifyStatus),
	)
	if err != nil {
		panic(err)
	}
	fmt.Print(roles)
	// Output:
	// apiVersion: rbac.authorization.k8s.io/v1
	// kind: ClusterRole
	// metadata:
	//   name: gateway
	// rules:
	// - apiGroups:
	//   - ""
	//   resourceNames:
	//   - certs
	//   resources:
	//   - namespaces
	//   verbs:
	//   - get
	// - apiGroups:
	//   - example.com
	//   resources:
	//   - hosts
	//   verbs:
	//   - get
	//   - list
	//   - watch
	// - apiGroups:
	//   - example.com
	//   resources:
	//   - hosts/status
	//   verbs:
	//   - patch
	// ---
	// apiVersion: rbac.authorization.k8s.io/v1
	// kind: Role
	// metadata:
	//   name: gateway
	//   namespace: certs
	// rules:
	// - apiGroups:
	//   - ""
	//   resources:
	//   - secrets
	//   verbs:
	//   - list
	//   - watch
	// ---
	// apiVersion: rbac.authorization.k8s.io/v1
	// kind: Role
	// metadata:
	//   name: gateway
	//   namespace: gateway
	// rules:
	// - apiGroups:
	//   - coordination.k8s.io
	//   resources:
	//   - leases
	//   verbs:
	//   - create
	// - apiGroups:
	//   - coordination.k8s.io
	//   resourceNames:
	//   - status
	//   resources:
	//   - leases
	//   verbs:
	//   - get
	//   - update
}
