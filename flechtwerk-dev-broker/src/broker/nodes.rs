//! Virtual nodes: one process that looks like a cluster, so that a node of it can be down.
//!
//! Each node has a listener of its own. Who leads a partition and who coordinates a group follows from the names and from
//! which nodes are up, the same on every start.

/// One node as clients see it.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) id: i32,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) up: bool,
}

/// All nodes, in the order of their ids, at least one.
#[derive(Debug)]
pub(crate) struct Nodes {
    all: Vec<Node>,
}

impl Nodes {
    pub(crate) fn new(all: Vec<Node>) -> Nodes {
        Nodes { all }
    }

    pub(crate) fn all(&self) -> &[Node] {
        &self.all
    }

    pub(crate) fn up(&self) -> impl Iterator<Item = &Node> {
        self.all.iter().filter(|node| node.up)
    }

    pub(crate) fn is_up(&self, id: i32) -> bool {
        self.up().any(|node| node.id == id)
    }

    /// Whether there was such a node.
    pub(crate) fn set_up(&mut self, id: i32, up: bool) -> bool {
        match self.all.iter_mut().find(|node| node.id == id) {
            Some(node) => {
                node.up = up;
                true
            }
            None => false,
        }
    }

    /// The one that stands for the controller: the first that is up.
    pub(crate) fn controller(&self) -> i32 {
        self.up().next().map_or(-1, |node| node.id)
    }

    /// The nodes that hold a partition, its preferred leader first.
    pub(crate) fn replicas(&self, topic: &str, partition: usize, replication: usize) -> Vec<i32> {
        let start = place(topic).wrapping_add(partition);
        (0..replication.clamp(1, self.all.len().max(1)))
            .filter_map(|n| self.from(start.wrapping_add(n)).map(|node| node.id))
            .collect()
    }

    /// The node that coordinates a group or a transactional id, if any node is up.
    pub(crate) fn coordinator(&self, key: &str) -> Option<&Node> {
        let start = place(key);
        (0..self.all.len()).filter_map(|n| self.from(start.wrapping_add(n))).find(|node| node.up)
    }

    fn from(&self, position: usize) -> Option<&Node> {
        let index = position.checked_rem(self.all.len())?;
        self.all.get(index)
    }
}

fn place(name: &str) -> usize {
    crc32c::crc32c(name.as_bytes()) as usize
}
