// Package apiserver gives tests a real Kubernetes API server: kube-apiserver and etcd, as
// processes of the test. One line starts them:
//
//	cluster := apiserver.StartAPIServer(t)
//	client, err := kates.NewClientFromRESTConfig(cluster.Config, katestest.DetectMutations(t))
//
// They are built from their own Go modules, in the versions that this module pins. Nothing but
// modules is downloaded. The first test of a machine takes minutes for that, and tells on standard
// error how far it is; `go test` shows that at once if it tests one package. The result is cached
// for all others, in the folder apiserver of $KATES_CACHE, else of $XDG_CACHE_HOME/kates, else of
// ~/.cache/kates. Processes that need it at once wait for one that builds. The go command must be
// in PATH; a C compiler is not needed. A pipeline keeps the cache, and fills it in a step before
// the tests:
//
//	go run github.com/kates-go/kates/kates/katestest/apiserver/cmd/apiserver
//
// They are of one of several versions of Kubernetes ([Versions]). $KATES_KUBERNETES chooses for all
// tests, such as KATES_KUBERNETES=1.35, so that a pipeline can run them on each; [WithKubernetes]
// chooses for one cluster. By default they are of the newest. An unknown version is an error that
// says which there are. The command above takes versions as arguments.
//
// A start takes seconds, so most packages use one cluster for all tests, and a namespace for each
// ([Share], [Cluster.Namespace]). [Start] is for programs that are not tests.
//
// There is no kubelet, no scheduler and no controller: nothing is garbage collected, a deleted
// namespace stays Terminating, a pod never runs. Everything listens on the loopback interface
// only. Authorization is RBAC, so a user of [Cluster.AddUser] has no rights until a role grants
// them.
//
// Servers can be killed, paused, restarted and added ([Server], [Cluster.KillEtcd]). etcd can be
// compacted and restored from a backup ([Cluster.Compact], [Cluster.Restore]). The processes end,
// and their data are removed, with the test, or within seconds after the test process was killed.
//
// The processes are run by controller-runtime's envtest. Its variables of the environment have no
// effect here. As with every program that imports it, there is a flag named kubeconfig. The
// package is tested on Linux. It uses nothing that macOS lacks.
package apiserver
