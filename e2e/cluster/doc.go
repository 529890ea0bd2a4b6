// Package cluster runs a real kube-apiserver and etcd for tests and benchmarks. It uses
// controller-runtime's envtest, on binaries that this repository builds from source.
//
// Start with [Start], once per test binary, from TestMain:
//
//	func TestMain(m *testing.M) {
//		c, err := cluster.Start(context.Background())
//		...
//		code := m.Run()
//		err = c.Stop()
//		...
//	}
//
// There is no kubelet, no scheduler and no controller: nothing is garbage collected, a deleted
// namespace stays Terminating, a pod never runs. Everything listens on the loopback interface
// only. Authorization is RBAC, so a user of [Cluster.AddUser] has no rights until a role grants
// them.
package cluster
