// Package serve is the HTTP side of ThinkFlow: runs are begun, answered and
// steered by requests, and followed as server-sent events. It listens on
// loopback, asks every program for a token and every browser for a cookie that
// a one-time ticket gives, and checks Host and Origin.
//
// Events are not buffered per client. Those of a run stand in one bounded list
// that all its clients read at their own pace; a client that falls behind it is
// served from the ledger, and one that takes nothing for a while is let go. So
// a slow client delays nobody.
package serve
