// Package source says where the clusters of a fleet come from. Each function returns a
// [fleet.Source] for [fleet.Options]:
//
//	f, err := fleet.New(fleet.Options{Sources: []fleet.Source{
//		source.Secrets(home, source.SecretOptions{Form: source.ClusterAPI}),
//		source.Directory("/etc/clusters"),
//	}})
//
// The sources are:
//
//   - [Secrets]: Secrets of a home cluster, as Cluster API and Argo CD write them, or any that
//     hold a kubeconfig.
//   - [Flux]: the clusters that Flux's Kustomizations and HelmReleases deploy to.
//   - [ClusterProfiles]: the ClusterProfile API of a home cluster, where it is served.
//   - [Directory]: the kubeconfig files in a directory of this machine.
//   - [Contexts]: contexts of a kubeconfig of this machine.
//
// A source names each cluster, and gives it the labels of the object that it comes from. If two
// objects name one cluster, the older one counts (of files, the first in alphabetical order), and
// the status of the fleet says so. A configuration that changes only its context's name or
// namespace is the same one: the connection stays.
//
// # What may go wrong
//
// A configuration that is broken, half written or refused is an error of its one cluster, in the
// status of the fleet. A cluster that was there before goes on as it was. If the home cluster does
// not answer, or refuses for lack of rights, all clusters stay, and the status of the source says
// why. No error has a part of a credential.
//
// # Configurations that come from a cluster
//
// Whoever may write a Secret in the home cluster decides what this program connects to. That must
// not be enough to decide what it does on its machine: a kubeconfig can name a program to run, or
// a file whose content is sent as a token to a server of the writer's choice. So a configuration
// from a cluster may do neither, nor name a proxy or switch off the check of the server's
// certificate. Where it does, it is refused, and the error says which option allows it ([Allow]).
// Files of this machine ([Directory], [Contexts]) may do all of that, as they may with kubectl.
//
// Of a Secret only what is needed is held in memory.
package source
