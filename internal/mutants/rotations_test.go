package mutants

const attend = "fleet/attend.go"

// rotations are mistakes where a cluster of a fleet changes how it is reached.
var rotations = []mutant{
	{
		name: "a rotation makes another cluster", says: "A cluster whose configuration changes keeps its client",
		file: attend, caught: "TestARotationKeepsTheClusterAndItsClient",
		old: `errors.Is(err, kates.ErrOtherCluster)`, new: `err == nil || errors.Is(err, kates.ErrOtherCluster)`,
	},
	{
		name: "another cluster keeps the client of the former one", says: "that one takes the name, as another *Cluster with a new",
		file: attend, caught: "TestAConfigurationForAnotherClusterStartsANewHistory",
		old: `errors.Is(err, kates.ErrOtherCluster)`, new: `false && errors.Is(err, kates.ErrOtherCluster)`,
	},
	{
		name: "a cluster that has never answered can never be moved", says: "a cluster that has never answered has no history",
		file: attend, caught: "TestAConfigurationMayWorkThoughTheFirstOneNeverDid",
		old: ` || c.Health().Heard.IsZero()`, new: ``,
	},
	{
		name: "a client forgets that its cluster does not say its UID", says: "and the old connection is refused it, or was once",
		file: connection, in: inFleet, caught: "TestARotationAfterTheOldCredentialWasRevoked",
		old: `c.connection.untold.Load()`, new: `false && c.connection.untold.Load()`,
	},
	{
		name: "a cluster has the identity of the one that had its name before", says: "with one history: a name, a client, and a cluster behind it",
		file: attend, caught: "TestANameThatComesAgainWhileAnotherClusterTakesItHasItsOwnIdentity",
		old: `		c = a.cluster()
		c.identify(uid)`, new: `		c = f.Cluster(a.seat.name)
		c.identify(uid)`,
	},
	{
		name: "a Reconnect after the Close reads its configuration first", says: "After [Client.Close], also during the call, the error is [ErrClosed]",
		file: connection, caught: "TestG11CloseWaitsForAReconnectThatHasExchangedTheConnection",
		old: `	if err := context.Cause(ctx); err != nil {
		return err
	}
`, new: ``,
	},
}
