// A guest with the browser's own WebRTC: answers an offer, shows the video, talks on the host's channel.

window.startGuest = async (offer) => {
  const peer = new RTCPeerConnection({ bundlePolicy: 'max-bundle' });
  const guest = { peer, began: performance.now(), messages: [], tracks: [] };
  window.guest = guest;
  guest.connected = new Promise((resolve, reject) => {
    peer.addEventListener('connectionstatechange', () => {
      if (peer.connectionState === 'connected') resolve(performance.now() - guest.began);
      if (peer.connectionState === 'failed') reject(new Error('the connection failed'));
    });
  });
  guest.channel = new Promise((resolve) => {
    peer.addEventListener('datachannel', ({ channel }) => {
      channel.binaryType = 'arraybuffer';
      channel.addEventListener('message', ({ data }) => guest.messages.push(data));
      resolve(channel);
    });
  });
  peer.addEventListener('track', ({ track, receiver }) => {
    guest.tracks.push(`${track.kind} ${track.id}`);
    if (track.kind !== 'video') return;
    receiver.jitterBufferTarget = 0;
    const video = document.createElement('video');
    Object.assign(video, { muted: true, autoplay: true, srcObject: new MediaStream([track]) });
    document.body.append(video);
    guest.video = video;
  });
  await peer.setRemoteDescription({ type: 'offer', sdp: offer });
  await peer.setLocalDescription();
  return peer.localDescription.sdp;
};

// What the browser has counted about the video.
window.videoStats = async () => {
  const reports = [...(await window.guest.peer.getStats()).values()];
  return reports.find(({ type, kind }) => type === 'inbound-rtp' && kind === 'video') ?? {};
};

// Resolves once `count` pictures were decoded.
window.decoded = async (count) => {
  for (;;) {
    const stats = await window.videoStats();
    if (stats.framesDecoded >= count) return stats;
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }
};

// Sends `text` and resolves with what comes back.
window.echo = async (text) => {
  const channel = await window.guest.channel;
  if (channel.readyState !== 'open') await new Promise((resolve) => channel.addEventListener('open', resolve));
  const came = new Promise((resolve) => channel.addEventListener('message', ({ data }) => resolve(data), { once: true }));
  channel.send(text);
  return { label: channel.label, data: await came };
};
