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
// A source names each cluster, and gives it the labels of the object that it comes from. An object
// that has a name keeps it for as long as it claims it, also if it is deleted and made again
// between two looks. If others claim the name, the status of the fleet says so. A name that is
// free goes to the oldest of the objects that claim it (of files, to the first in alphabetical
// order). After a restart of the program nothing is remembered, and all names are free. So an
// object that is older, and was edited to claim another's name, has it then. Let only people whom
// you trust with all clusters write where names are chosen: Argo CD's Secrets, and those that
// SecretOptions.Name names.
// Names that have the object's namespace in them cannot be claimed from another namespace.
//
// A configuration that changes only its context's name or namespace is the same one: the
// connection stays.
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
// Nor may a configuration from a cluster lead anywhere: a service that only this machine reaches
// would get requests of the writer's choice (SSRF). Refused are:
//
//   - unspecified addresses (0.0.0.0/8, ::)
//   - loopback addresses (127.0.0.0/8, ::1)
//   - link-local addresses (169.254.0.0/16, fe80::/10)
//   - site-local addresses (fec0::/10)
//   - addresses of a Teredo tunnel (2001::/32)
//   - multicast addresses (224.0.0.0/4, ff00::/8)
//   - the broadcast address (255.255.255.255)
//   - addresses of cloud metadata (169.254.169.254, fd00:ec2::/32, fd20:ce::254,
//     fd00:c1::a9fe:a9fe, 100.100.100.200, 168.63.129.16, 192.0.0.192)
//   - IPv6 addresses that have one of these IPv4 addresses in them (IPv4-mapped and -compatible,
//     NAT64, 6to4, SIIT, ISATAP)
//
// The option Hosts ([SecretOptions], [FluxOptions], [ProfileOptions]) names what is allowed in
// place of all others.
// The check is made for each connection, after the name is resolved, also of that to a proxy. A
// proxy resolves names itself: of a server behind a proxy only the name is known here, and it must
// be among Hosts if there are any. A proxy that the environment of this program names (HTTPS_PROXY)
// is trusted for itself, and need not be among Hosts. Programs that get credentials (AllowExec, an
// [AccessProvider]) connect by themselves. Nothing here checks their connections.
//
// Of a Secret only what is needed is held in memory.
package source
