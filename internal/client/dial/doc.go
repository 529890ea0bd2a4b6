// Package dial decides which addresses the connections to a cluster may go to, where a stranger
// has named the cluster. Else a stranger could have requests sent to services that only this
// machine reaches.
//
// [Rules] say what is allowed. A [Guard] dials for one cluster. It checks each address after the
// name is resolved, right before the connection is made: so a name that resolves otherwise the
// next time gains nothing.
//
// A proxy resolves names itself. The address of the proxy is checked like any other, and so is the
// address of a cluster behind it if it is written as one. What a name means to the proxy cannot be
// known here: then only the names that [Rules] list can be told from others. The proxy that the
// program itself connects through is trusted, and what is behind it is not.
package dial
